"""Nothing to record: no torch, torch not used, a model that only predicts. It is said clearly."""

import os
from pathlib import Path

import pytest

import strobe
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
    assert line.startswith("strobe: nothing was recorded: the command failed (exit code 1)")
    with pytest.raises(strobe.StrobeError, match="nothing was recorded"):
        strobe.open_run(tmp_path / "run")


def test_steps_said_by_hand_need_no_torch(without_torch, tmp_path: Path):
    done = record(tmp_path / "run", said_training(tmp_path, "train(20)\n"), env=without_torch)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "run") == {0: 20}
    assert "Traceback" not in done.stderr


def test_a_script_without_torch(tmp_path: Path):
    done = record(tmp_path / "run", write(tmp_path, "print('hello')\nraise SystemExit(3)\n"))
    assert (done.returncode, done.stdout) == (3, "hello\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("strobe: nothing was recorded: ") and "check that the script" in line
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]
    shown = python("-m", "strobe", "show", tmp_path / "run", "--json")
    assert shown.returncode == 4 and '"ok": false' in shown.stdout and '"hint"' in shown.stdout


PREDICTS = """
from torch.utils.data import DataLoader
net.eval()
with torch.no_grad():
    for x in DataLoader(torch.randn(64, 8), batch_size=4):
        y = net(x)
print(y.sum().item())
sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--steps=6:11", "--whole"])
def test_a_model_that_only_predicts(option: str, tmp_path: Path):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    done = python("-m", "strobe", "run", "-o", run, option, training(tmp_path, PREDICTS))
    assert done.returncode == 3 and done.stdout.count("\n") == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("strobe: nothing was recorded: ") and "a backward pass" in line
    assert [path.name for path in run.iterdir()] == ["run.json"]
