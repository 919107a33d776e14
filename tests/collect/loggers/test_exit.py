"""A script that only logs is recorded, unless another process of its run trains."""

from pathlib import Path

import pytest

from tests.collect.loggers.runs import record, scalars
from tests.faults.processes import ask, problems, python, recorded, said_training, steps, write

pytestmark = pytest.mark.slow

LOGS = """
from tensorboardX import SummaryWriter
with SummaryWriter("logs") as writer:
    for step in range(3):
        writer.add_scalar("score", step / 4, step)
    writer.add_text("note", "no step")
"""


def test_a_script_that_never_trains_is_recorded_when_it_ends(tmp_path: Path):
    run = record(tmp_path, LOGS)
    assert scalars(run) == [("score", 0, 0.0), ("score", 1, 0.25), ("score", 2, 0.5)]
    assert ask(run, "select text, step from texts") == [("no step", None)]
    assert problems(run) == []


def test_what_is_logged_before_training_is_in_the_rank_that_trains(tmp_path: Path):
    run = record(tmp_path, LOGS + "import strobe\nstrobe.step()\nstrobe.step()\n")
    assert [tag for tag, *_ in scalars(run)] == ["score"] * 3
    assert steps(run) == {0: 2}


def test_a_parent_of_the_training_does_not_become_a_rank(tmp_path: Path):
    said_training(tmp_path, "train()", "child.py")
    script = write(tmp_path, "import subprocess, sys\n" + LOGS
                   + "subprocess.run([sys.executable, 'child.py'], check=True)\n")  # fmt: skip
    done = python(*recorded(tmp_path / "run", script), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "run") == {0: 5}
    assert scalars(tmp_path / "run") == []
    (problem,) = problems(tmp_path / "run")
    assert "what train.py logged is not recorded" in problem


def test_with_a_profiler_only_what_is_logged_inside_is_recorded(tmp_path: Path):
    script = write(tmp_path, """
import strobe
from tensorboardX import SummaryWriter
before = SummaryWriter.add_scalar
writer, profiler = SummaryWriter("logs"), strobe.Profiler("run", light=True)
writer.add_scalar("outside", 1, 0)
for part in range(2):
    profiler.start()
    writer.add_scalar("inside", part, part)
    strobe.step()
    profiler.stop()
    writer.add_scalar("outside", 1, 0)
profiler.analyse()
assert SummaryWriter.add_scalar is before
""")  # fmt: skip
    done = python(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert scalars(tmp_path / "run") == [("inside", 0, 0.0), ("inside", 1, 1.0)]
