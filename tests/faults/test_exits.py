"""The script ends, prints and sees itself as it would without Strobe."""

import os
from pathlib import Path

import pytest

from tests.faults.processes import (
    python,
    said_training,
    states,
    steps,
    training,
    with_and_without,
    write,
)

# How a script leaves: exit code, state of the run, state of its rank.
EXITS = {
    "pass": (0, "finished", "finished"),
    "sys.exit()": (0, "finished", "finished"),
    "sys.exit(3)": (3, "failed", "failed"),
    "sys.exit('no more data')": (1, "failed", "failed"),
    "os._exit(7)": (7, "failed", "killed"),
    "os.abort()": (-6, "killed", "killed"),
    "os.kill(os.getpid(), signal.SIGSEGV)": (-11, "killed", "killed"),
    "os.kill(os.getpid(), signal.SIGUSR1)": (-10, "killed", "killed"),
    "raise KeyboardInterrupt": (-2, "interrupted", "interrupted"),
    "raise ValueError('bad batch')": (1, "failed", "failed"),
}


@pytest.mark.parametrize("leave", EXITS)
def test_exit(leave: str, tmp_path: Path):
    code, state, rank_state = EXITS[leave]
    script = said_training(tmp_path, f"train(20)\nsys.stdout.write('out')\n{leave}\n")
    ours, bare = with_and_without(tmp_path / "run", script)
    assert ours.returncode == bare.returncode == code
    assert (ours.stdout, ours.stderr) == (bare.stdout, bare.stderr)
    assert steps(tmp_path / "run") == {0: 20}
    assert states(tmp_path / "run") == (state, [rank_state])


SELF = """
import __main__, json, random, sys, os, threading, warnings
random.seed(1)
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "main": __main__.__file__, "name": __name__,
    "spec": bool(__spec__), "package": repr(__package__), "random": random.random(),
    "cwd": os.getcwd(), "flags": repr(sys.flags), "threads": threading.active_count(),
    "filters": repr(warnings.filters), "hooks": repr(sys.excepthook),
    "customized": getattr(sys, "customized", False),
    "main names": sorted(vars(__main__)),
}, indent=1))
"""


def test_a_script_that_does_not_train_sees_itself_as_ever(tmp_path: Path):
    """Also where the user has a sitecustomize already: ours stands before it and runs it."""
    write(tmp_path, SELF, "look.py")
    (tmp_path / "site").mkdir()
    write(tmp_path / "site", "import sys\nsys.customized = True\n", "sitecustomize.py")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    for number, words in enumerate((("look.py", "--json", "-o", "x y"), ("-m", "look", "a"))):
        run = tmp_path / f"run{number}"
        ours, bare = with_and_without(run, *words, cwd=tmp_path, env=environment)
        assert ours.returncode == bare.returncode == 0, ours.stderr
        assert ours.stdout == bare.stdout
        assert '"customized": true' in ours.stdout
        assert not run.exists()


RANDOM = """
import random, numpy
first = (random.random(), numpy.random.rand(), torch.rand(1).item())
torch.manual_seed(0); numpy.random.seed(0); random.seed(0)
train(12)
print(random.random(), numpy.random.rand(), torch.rand(1).item(), train(1))
print(torch.get_num_threads(), torch.initial_seed(), torch.is_grad_enabled())

class Broken(torch.nn.Module):
    def forward(self, x):
        raise ValueError("bad batch")

try:
    Broken()(torch.ones(1))
except ValueError as error:
    print(type(error.__context__), error.__traceback__.tb_next.tb_frame.f_code.co_name)
train(5)
net[1] = Broken()
try:
    train(1)
except ValueError:
    raise RuntimeError("nested")
"""


@pytest.mark.slow
def test_random_state_and_the_traceback_of_a_torch_training(tmp_path: Path):
    """Also a fault in the middle of a forward pass, caught at first and then not."""
    pytest.importorskip("torch")
    script = training(tmp_path, RANDOM)
    ours, bare = with_and_without(tmp_path / "run", script)
    assert ours.returncode == bare.returncode == 1
    assert ours.stdout == bare.stdout
    assert ours.stderr == bare.stderr
    assert steps(tmp_path / "run") == {0: 18}
    assert states(tmp_path / "run") == ("failed", ["failed"])


BROKEN = "raise RuntimeError('this package is broken')\n"


@pytest.mark.parametrize("package", ["duckdb", "rich", "numpy", "msgspec"])
def test_a_broken_package_costs_the_summary_and_nothing_else(package: str, tmp_path: Path):
    (tmp_path / "broken").mkdir()
    write(tmp_path / "broken", BROKEN, f"{package}.py")
    script = said_training(tmp_path, "train(20)\nsys.exit(3)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "broken")}
    run = tmp_path / "run"
    done = python("-m", "strobe", "run", "-o", run, script, env=environment)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr and "this package is broken" in done.stderr
    assert steps(run) == {0: 20}
