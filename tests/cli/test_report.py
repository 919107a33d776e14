"""What is printed at the end of a run: the verdict, then the summary; Ctrl-C cancels only that."""

import io
import json
import os
import signal
import threading

import pytest

from strobe.cli import progress_line, report
from tests.faults.processes import end, python, said_training, start, steps


@pytest.mark.slow
def test_the_verdict_comes_before_the_summary(tmp_path):
    script = said_training(tmp_path, "train(20)\n")
    done = python("-m", "strobe", "run", "--light", "-o", tmp_path / "run", script)
    assert done.stderr.index("strobe advise") < done.stderr.index("One step takes")
    assert done.stderr.splitlines()[-1].startswith("strobe: recorded to")
    shown = python("-m", "strobe", "show", tmp_path / "run")
    assert shown.stdout.index("strobe advise") < shown.stdout.index("One step takes")


# It says when the summary is being made, and gives Ctrl-C the time to come.
SLOW_REPORT = """
import sys, time
from strobe import advise
from strobe.cli import main

def slow(run, *rules):
    print("advising", file=sys.stderr, flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:  # DuckDB makes an error of it, which a rule may take for its own
        raise RuntimeError("Query interrupted")

advise.advise = slow
sys.exit(main(sys.argv[1:]))
"""

SLOW_TO_LEAVE = """
class Last:
    def __del__(self, sleep=time.sleep, write=sys.stderr.write):
        sleep(4)

last = Last()
train(20)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "state", "code"),
    [(SLOW_TO_LEAVE, "finished", 0), ("train(20)\nos._exit(3)\n", "failed", 3)],
    ids=["while its interpreter ends", "when it has ended"],
)
def test_ctrl_c_cancels_the_summary_and_not_the_run(tmp_path, text, state, code):
    (tmp_path / "slow.py").write_text(SLOW_REPORT)
    script = said_training(tmp_path, text)
    words = ("slow.py", "run", "--light", "-o", tmp_path / "run", script)
    process = start(*words, cwd=tmp_path)
    assert process.stderr.readline() == "advising\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the script as well
    done = end(process)
    assert done.returncode == code, done.stderr
    cancelled = f"strobe: summary cancelled. The run is recorded in {tmp_path / 'run'}; "
    assert [line for line in done.stderr.splitlines() if "cancelled" in line] == [
        f"{cancelled}to see it: strobe show {tmp_path / 'run'}"
    ]
    assert "Query interrupted" not in done.stderr
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (manifest["state"], manifest["exit_code"]) == (state, code)
    assert steps(tmp_path / "run") == {0: 20}


def test_a_run_with_data_is_never_removed(tmp_path):
    run = tmp_path / "run"
    (run / "rank_0").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    assert not report.remove_if_empty(run, was_there=False)
    (run / "rank_0").rmdir()
    (run / "problems.txt").write_text("cannot record: No space left")
    assert not report.remove_if_empty(run, was_there=False)
    (run / "problems.txt").unlink()
    assert report.remove_if_empty(run, was_there=False) and not run.exists()


def test_what_takes_long_is_said_on_a_terminal_and_taken_back(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress_line, "_WORTH_SHOWING_S", 0.0)
    terminal, said = Terminal(), threading.Event()
    monkeypatch.setattr(terminal, "flush", said.set)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_line.ProgressLine("reading the run"):
        assert said.wait(60)
    assert terminal.getvalue() == "strobe: reading the run ...\r\033[K"
    monkeypatch.setattr(progress_line, "_WORTH_SHOWING_S", 60)
    with progress_line.ProgressLine("reading the run"):
        pass
    assert terminal.getvalue().count("reading") == 1
