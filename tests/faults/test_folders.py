"""Where to record: what lies there is never harmed, and two runs never mix."""

import shutil
from pathlib import Path

import pytest

from tests.faults.processes import (
    ask,
    end,
    problems,
    python,
    recorded,
    said_training,
    start,
    states,
    steps,
)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return said_training(tmp_path, "train(int(sys.argv[1]))\nprint('trained')\n")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_empty_folder_is_used(script: Path, tmp_path: Path):
    (tmp_path / "run").mkdir()
    assert python(*recorded(tmp_path / "run", script, 4)).returncode == 0
    assert steps(tmp_path / "run") == {0: 4}


def test_folders_that_do_not_exist_yet_are_made(script: Path, tmp_path: Path):
    assert python(*recorded(tmp_path / "a" / "b" / "run", script, 4)).returncode == 0
    assert steps(tmp_path / "a" / "b" / "run") == {0: 4}


def test_a_run_is_replaced_only_when_asked(script: Path, tmp_path: Path):
    run = tmp_path / "run"
    python(*recorded(run, script, 4))
    before = contents(run)
    done = python(*recorded(run, script, 5))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: this folder already contains a run\n  --> {run}\n"
        "  help: Choose another folder with -o, or replace the run with --overwrite.\n"
    )
    assert contents(run) == before
    assert python(*recorded(run, "--overwrite", script, 6)).returncode == 0
    assert steps(run) == {0: 6}


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
def test_a_folder_with_other_files_is_never_touched(overwrite, script: Path, tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    done = python(*recorded(tmp_path / "run", *overwrite, script, 4))
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: this folder is not empty" in done.stderr and "help:" in done.stderr
    assert list(contents(tmp_path / "run").values()) == [b"years of work"]


def test_a_file_is_never_touched(script: Path, tmp_path: Path):
    (tmp_path / "run").write_text("a file")
    done = python(*recorded(tmp_path / "run", script, 4))
    assert (done.returncode, done.stdout) == (2, "")
    assert "a file has the same name" in done.stderr
    below = python(*recorded(tmp_path / "run" / "below", script, 4))
    assert (below.returncode, below.stdout) == (0, "trained\n"), "training runs unrecorded"
    assert "cannot record to" in below.stderr and "Not a directory" in below.stderr
    assert (tmp_path / "run").read_text() == "a file"


def test_of_two_commands_at_once_on_one_folder_the_second_is_refused(script: Path, tmp_path: Path):
    for attempt in range(5):
        run = tmp_path / f"run{attempt}"
        both = [start(*recorded(run, script, 4)) for _ in range(2)]
        done = sorted((end(process) for process in both), key=lambda each: each.returncode)
        assert [each.returncode for each in done] == [0, 2]
        assert "error: " in done[1].stderr and "help: Choose another folder" in done[1].stderr
        assert steps(run) == {0: 4}


def test_profilers_of_two_processes_on_one_folder_are_both_kept(tmp_path: Path):
    script = said_training(
        tmp_path, "with strobe.Profiler(output_path='data'): train(int(sys.argv[1]))\n"
    )
    for _ in range(5):
        both = [end(p) for p in [start(script, count, cwd=tmp_path) for count in (3, 4)]]
        assert [each.returncode for each in both] == [0, 0]
        found = [steps(run)[0] for run in (tmp_path / "data", tmp_path / "data-2")]
        assert sorted(found) == [3, 4]
        assert sum("recording to data-2" in each.stderr for each in both) == 1
        shutil.rmtree(tmp_path / "data")
        shutil.rmtree(tmp_path / "data-2")


TWO = """
import subprocess
if len(sys.argv) == 1:
    both = [subprocess.Popen([sys.executable, __file__, n]) for n in ("3", "4")]
    sys.exit(max(process.wait() for process in both))
os.environ["RANK"], os.environ["WORLD_SIZE"] = "1", "2"
train(int(sys.argv[1]))
"""


def test_two_processes_that_both_say_rank_1_are_both_kept(tmp_path: Path):
    done = python(*recorded(tmp_path / "run", said_training(tmp_path, TWO)))
    assert done.returncode == 0, done.stderr
    found = steps(tmp_path / "run")
    assert list(found) == [1, 2] and sorted(found.values()) == [3, 4]
    (what,) = problems(tmp_path / "run")
    assert what.startswith("this process is rank 1, which another process of the run had already")
    assert ask(tmp_path / "run", "select rank from problems") == [(2,)]
    assert states(tmp_path / "run") == ("finished", ["finished"] * 2)
