"""Every shape of loop, run as it is: the right number of steps, phases in order, the same loss."""

import subprocess
import sys
from pathlib import Path

import pytest

import strobe

pytest.importorskip("torch")
HERE = Path(__file__).parent

# Script, true number of steps, phases of a typical step in order.
PLAIN = "gap forward backward update"
LOOPS = {
    "plain": (24, PLAIN),
    "gan": (20, "gap forward backward update rest forward backward update"),
    "gan_own_iterator": (20, "gap forward backward update rest forward backward update"),
    "accumulation": (
        20,
        "gap forward backward " + 3 * "rest gap rest forward backward " + "update",
    ),
    "evaluation": (20, PLAIN),
    "evaluation_with_gradients": (20, PLAIN),
    "by_hand": (20, "gap forward rest forward backward update"),
    "by_hand_functional": (20, "forward backward update"),
    "lbfgs": (12, None),
    "compiled": (20, PLAIN),
    "own_iterator": (20, PLAIN),
    "said": (20, "gap forward backward update rest gap rest forward backward update rest"),
    "workers": (20, PLAIN),
    "checkpointed": (20, PLAIN),
    "restored": (20, PLAIN),
    "two_trainings": (20, PLAIN),
    "thread_beside": (20, PLAIN),
    "lightning_trainer": (20, None),
    "transformers_trainer": (12, None),
}
# Past the window of full recording, which ends with a stretch of our own work.
TYPICAL_STEP = 17
NEEDS = {"lightning_trainer": "lightning", "transformers_trainer": "transformers"}


def test_every_script_here_is_run():
    scripts = {path.stem for path in HERE.glob("*.py")} - {"common", "test_loops", "__init__"}
    assert scripts == set(LOOPS)


@pytest.mark.parametrize("name", LOOPS)
def test_loop(name: str, tmp_path: Path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    script = str(HERE / f"{name}.py")
    recorded = run_python("-m", "strobe", "run", "-q", "-o", str(tmp_path / "run"), script)
    bare = run_python(script)
    assert recorded.splitlines()[-1] == bare.splitlines()[-1]
    steps, phases = LOOPS[name]
    with strobe.open_run(tmp_path / "run") as run:
        assert run.sql("select count(*) from steps").fetchall() == [(steps,)]
        assert run.sql("select distinct rank from steps").fetchall() == [(0,)]
        if phases:
            assert phases_of_step(run, TYPICAL_STEP) == phases


@pytest.mark.parametrize("name", ["own_iterator", "plain"])
def test_modules_have_their_path_from_the_root(name: str, tmp_path: Path):
    """Also where no data loader gives the window a place to begin but the root's own call."""
    script = str(HERE / f"{name}.py")
    run_python("-m", "strobe", "run", "-q", "-o", str(tmp_path / "run"), script)
    with strobe.open_run(tmp_path / "run") as run:
        scopes = run.sql("select distinct scope from events where kind = 'module'").fetchall()
    root = {"Sequential", "Sequential.0", "Sequential.1", "Sequential.2"}
    assert {scope for (scope,) in scopes} - {"MSELoss"} == root


def phases_of_step(run, step: int) -> str:
    rows = run.sql(
        f"select name from events where kind = 'phase' and step = {step} order by ts_ns, id"
    ).fetchall()
    return " ".join(name for (name,) in rows)


def run_python(*arguments: str) -> str:
    """Stdout of a Python command that must succeed."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, cwd=HERE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
