"""Every shape of loop, run as it is: the right number of steps, phases in order, the same loss."""

import functools
import types
from pathlib import Path

import pytest
from tests import warm
from tests.faults import processes

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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run of a script, recorded when it is first asked for, and what the script printed."""
    folder = tmp_path_factory.mktemp("loops")

    @functools.cache
    def record(name: str) -> tuple[Path, str]:
        if name in NEEDS:
            pytest.importorskip(NEEDS[name])
        run, way = folder / name, way_of(name)
        return run, printed(way, *way.recorded(run, script_of(name)))

    return record


@pytest.mark.parametrize("name", LOOPS)
def test_loop(name: str, recorded):
    folder, output = recorded(name)
    bare = printed(way_of(name), script_of(name))
    assert output.splitlines()[-1] == bare.splitlines()[-1]
    steps, phases = LOOPS[name]
    with strobe.open_run(folder) as run:
        assert run.sql("select count(*) from steps").fetchall() == [(steps,)]
        assert run.sql("select distinct rank from steps").fetchall() == [(0,)]
        if phases:
            assert phases_of_step(run, TYPICAL_STEP) == phases


@pytest.mark.parametrize("name", ["own_iterator", "plain"])
def test_modules_have_their_path_from_the_root(name: str, recorded):
    """Also where no data loader gives the window a place to begin but the root's own call."""
    with strobe.open_run(recorded(name)[0]) as run:
        scopes = run.sql("select distinct scope from events where kind = 'module'").fetchall()
    root = {"Sequential", "Sequential.0", "Sequential.1", "Sequential.2"}
    assert {scope for (scope,) in scopes} - {"MSELoss"} == root


def phases_of_step(run, step: int) -> str:
    rows = run.sql(
        f"select name from events where kind = 'phase' and step = {step} order by ts_ns, id"
    ).fetchall()
    return " ".join(name for (name,) in rows)


def script_of(name: str) -> Path:
    return HERE / f"{name}.py"


def way_of(name: str) -> types.ModuleType:
    """Most scripts start with torch imported; these import it under Strobe, as users' do."""
    return processes if name in ("plain", "compiled", *NEEDS) else warm


def printed(way: types.ModuleType, *words: object) -> str:
    """Stdout of a Python command that must succeed."""
    done = way.python(*words, cwd=HERE)
    assert done.returncode == 0, done.stderr
    return done.stdout
