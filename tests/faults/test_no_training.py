"""Nothing to record: no torch, torch not used, a model that only predicts. It is said clearly."""

import os
import sys
from pathlib import Path

import pytest

from tests.faults.processes import TRAINING, python, said_training, steps, training, write

NO_TORCH = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"


@pytest.fixture
def without_torch(tmp_path: Path) -> dict[str, str]:
    """An environment in which `import torch` fails as if it were not installed."""
    (tmp_path / "site").mkdir()
    write(tmp_path / "site", NO_TORCH, "torch.py")
    return {**os.environ, "PYTHONPATH": str(tmp_path / "site")}


def record(run: Path, script: Path, **options: object):
    """With the summary, which has to say that there is nothing."""
    return python("-m", "strobe", "run", "-o", run, script, **options)


def test_a_script_that_needs_torch_without_torch(without_torch, tmp_path: Path):
    script = write(tmp_path, TRAINING)
    done = record(tmp_path / "run", script, env=without_torch)
    bare = python(script, env=without_torch)
    assert done.returncode == bare.returncode == 1
    assert bare.stderr in done.stderr
    (line,) = done.stderr.removeprefix(bare.stderr).splitlines()
    assert line == (
        "strobe: nothing was recorded: the command ended before its first training step "
        "(state: failed, exit code 1)"
    )
    assert not (tmp_path / "run").exists()


def test_steps_said_by_hand_need_no_torch(without_torch, tmp_path: Path):
    done = record(tmp_path / "run", said_training(tmp_path, "train(20)\n"), env=without_torch)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "run") == {0: 20}
    assert "Traceback" not in done.stderr


def test_a_script_without_torch(tmp_path: Path):
    script = write(tmp_path, "print('hello')\n")
    done = python("-m", "strobe", "run", script, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("strobe: nothing was recorded: ") and "Check that the script" in line
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_folder_that_was_there_stays_and_one_with_other_files_is_left_alone(tmp_path: Path):
    run, script = tmp_path / "run", write(tmp_path, "open('run/mine', 'w').close()\n")
    run.mkdir()
    assert record(run, write(tmp_path, "pass\n", "other.py")).returncode == 0
    assert [*run.iterdir()] == []
    assert record(run, script, cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in run.iterdir()) == ["mine", "run.json"]


def test_a_command_that_records_itself(tmp_path: Path):
    script = said_training(tmp_path, "train(20)\n")
    inner = (sys.executable, "-m", "strobe", "run", "-o", "inner", script)
    done = python("-m", "strobe", "run", "-o", "outer", "--", *inner, cwd=tmp_path)
    assert done.returncode == 0 and steps(tmp_path / "inner") == {0: 20}
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "strobe: nothing was recorded here: the command contains a strobe run of its own"
    )
    assert last.endswith(f"strobe show {tmp_path / 'inner'}")
    assert not (tmp_path / "outer").exists()


PREDICTS = """
from torch.utils.data import DataLoader
net.eval()
with torch.no_grad():
    for x in DataLoader(torch.randn(64, 8), batch_size=4):
        y = net(x)
print(y.sum().item())
"""


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--steps=6:11", "--whole"])
def test_a_model_that_only_predicts(option: str, tmp_path: Path):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    done = python("-m", "strobe", "run", "-o", run, option, training(tmp_path, PREDICTS))
    assert done.returncode == 0 and done.stdout.count("\n") == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("strobe: nothing was recorded: ") and "a backward pass" in line
    assert not run.exists()
