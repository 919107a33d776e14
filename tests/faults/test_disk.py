"""A full, read-only or vanished disk: training ends as it would, it is said, what fitted is there.

A tmpfs cannot be remounted read-only while a file in it is mapped, so that fault is staged from
the start only.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

import strobe
from tests.faults.processes import (
    ask,
    lines_of_ours,
    problems,
    python,
    recorded,
    said_training,
    states,
    steps,
    training,
    with_and_without,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs needs root")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch):
    """Mount a tmpfs of a size in kB; give its folder."""
    # Tables of a run that cannot be written to go to the temporary folder.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    mounted = []

    def mount(size_kb: int, *options: str) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        given = ",".join([f"size={size_kb}k", *options])
        subprocess.run(["mount", "-t", "tmpfs", "-o", given, "tmpfs", str(folder)], check=True)
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


ENDS_WITH_3 = "train(20)\nprint('trained')\nsys.exit(3)\n"


@needs_root
def test_a_disk_too_small_for_the_journal(disk, tmp_path: Path):
    run = disk(64) / "run"
    ours, bare = with_and_without(run, said_training(tmp_path, ENDS_WITH_3))
    assert (ours.returncode, ours.stdout) == (3, "trained\n") == (bare.returncode, bare.stdout)
    warning, line = ours.stderr.splitlines()
    assert warning.startswith(
        f"strobe: only 0 MB are free for {run}. When the disk is full, recording stops"
    )
    assert line.startswith(f"strobe: cannot record to {run}: No space left on device")
    assert "raining continues" in line
    with pytest.raises(strobe.StrobeError, match="nothing was recorded.*No space left"):
        strobe.open_run(run)
    assert sorted(path.name for path in run.iterdir()) == ["problems.txt", "run.json"]


@needs_root
def test_a_disk_too_small_even_for_the_description(disk, tmp_path: Path):
    folder = disk(4)
    ours, _ = with_and_without(folder / "run", said_training(tmp_path, ENDS_WITH_3))
    assert (ours.returncode, ours.stdout) == (3, "trained\n")
    _, first, *others = ours.stderr.splitlines()
    assert "cannot record to" in first and "No space left" in first
    assert len(others) <= 1, "run.json fits or not, as the kernel counts a page"


@needs_root
def test_a_disk_that_fills_up_with_marks(disk, tmp_path: Path):
    """Two segments of the journal fit, 43 thousand marks each, and then nothing at all.

    Samples and counters take a part of them, more on a slow machine.
    """
    run = disk(2 * 1024 + 300) / "run"
    script = said_training(tmp_path, "train(150_000)\nprint('trained')\nsys.exit(3)\n")
    ours, bare = with_and_without(run, script)
    assert (ours.returncode, ours.stdout) == (3, "trained\n") == (bare.returncode, bare.stdout)
    warning, line = ours.stderr.splitlines()
    assert warning.startswith(f"strobe: only 2 MB are free for {run}. ")
    assert line.startswith(f"strobe: recording stopped: cannot write to {run}: No space left")
    assert 60_000 < steps(run)[0] < 90_000
    assert states(run) == ("failed", ["failed"]), "by its exit code, not by the disk"
    assert any("No space left" in what for what in problems(run)), problems(run)
    shown = python("-m", "strobe", "show", run, "problems", "--json")
    assert shown.returncode == 0 and "No space left" in shown.stdout, shown.stderr


HEAVY = """
def heavy(steps):
    for _ in range(steps):
        loss = net(torch.randn(4, 8)).mean()
        for _ in range(4000):
            loss = loss + 1
        loss.backward()
        optimizer.step()

heavy(9)
train(20)
print('trained')
sys.exit(3)
"""


@needs_root
@pytest.mark.slow
def test_a_disk_too_small_for_the_window(disk, tmp_path: Path):
    pytest.importorskip("torch")
    run = disk(8_000) / "run"
    done = python(*recorded(run, "--steps=2:7", training(tmp_path, HEAVY)))
    assert (done.returncode, done.stdout) == (3, "trained\n")
    assert len(done.stderr.splitlines()) == 2, done.stderr
    line = done.stderr.splitlines()[1]
    assert line.startswith("strobe: ") and "window" in line and "disk" in line
    assert steps(run) == {0: 29}
    assert any("window" in what for what in problems(run))
    left = os.statvfs(run)
    assert left.f_bavail * left.f_bsize > 5_000_000, "what did not fit must not stay"
    assert ask(run, "select count(*) from events where kind = 'op'") == [(0,)]


@needs_root
def test_a_read_only_folder(disk, tmp_path: Path):
    folder = disk(4000, "ro")
    ours, _ = with_and_without(folder / "run", said_training(tmp_path, ENDS_WITH_3))
    assert (ours.returncode, ours.stdout) == (3, "trained\n")
    line = ours.stderr.splitlines()[-1]
    assert "cannot record to" in line and "Read-only file system" in line

    text = f"""
profiler = strobe.Profiler(output_path={str(folder / "run")!r})
with profiler:
    train(20)
    profiler.step()
profiler.analyse()
print("trained")
"""
    done = python(said_training(tmp_path, text))
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "Traceback" not in done.stderr
    assert "cannot record to" in done.stderr and "Read-only file system" in done.stderr


@needs_root
def test_a_run_on_a_read_only_disk_can_be_looked_at(disk, tmp_path: Path):
    folder = disk(4000)
    done = python(*recorded(folder / "run", said_training(tmp_path, "train(20)\n")))
    assert done.returncode == 0, done.stderr
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    assert steps(folder / "run") == {0: 20}


REMOVED = """
import shutil
train(20)
time.sleep(0.5)  # who removes a folder while files are made in it fails, whoever makes them
shutil.rmtree({run!r})
train(100_000)
print("trained")
sys.exit(3)
"""


def test_a_folder_that_vanishes(tmp_path: Path):
    run = tmp_path / "run"
    script = said_training(tmp_path, REMOVED.format(run=str(run)))
    done = python(*recorded(run, script))
    assert (done.returncode, done.stdout) == (3, "trained\n")
    lines = done.stderr.splitlines()
    assert lines == lines_of_ours(done) and len(lines) == 2
    assert "recording stopped: cannot write to" in lines[0] and "No such file" in lines[0]
    assert not run.exists()


@pytest.mark.slow
def test_a_folder_that_vanishes_during_a_window(tmp_path: Path):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    text = f"""
import shutil, time
train(4)
time.sleep(0.5)
shutil.rmtree({str(run)!r})
train(20)
print("trained")
sys.exit(3)
"""
    done = python(*recorded(run, "--steps=2:7", training(tmp_path, text)))
    assert (done.returncode, done.stdout) == (3, "trained\n")
    lines = done.stderr.splitlines()
    assert lines == lines_of_ours(done) and len(lines) == 2
    assert not run.exists()
