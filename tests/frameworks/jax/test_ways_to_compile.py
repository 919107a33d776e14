"""Trainings that are compiled otherwise than by a plain jax.jit, in an environment with JAX."""

import functools
import json
from pathlib import Path

import pytest

from tests.frameworks.environment import rows, run, strobe

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parent / "scripts" / "compiling.py"
STEPS = 24


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run of a way to compile, and what the script said of itself."""
    folder = tmp_path_factory.mktemp("ways")

    @functools.cache
    def record(way):
        out, there = folder / f"{way}.json", folder / way
        strobe("jax", "run", "-q", "-o", there, SCRIPT, way, out)
        return there, json.loads(out.read_text())

    return record


@pytest.mark.parametrize(
    "way", ["mapped", "mapped and donated", "decorated", "ahead of time", "not compiled"]
)
def test_every_call_that_updates_is_a_step(recorded, way):
    there, said = recorded(way)
    steps = rows("jax", there, "SELECT step, dur_ns FROM steps ORDER BY step")
    assert [row["step"] for row in steps] == list(range(1, STEPS + 1))
    total_s = sum(row["dur_ns"] for row in steps) / 1e9
    assert 0.7 * said["seconds"] < total_s < 1.05 * said["seconds"]
    assert rows("jax", there, "SELECT * FROM problems") == []


@pytest.mark.parametrize("way", ["mapped and donated", "ahead of time"])
def test_losses_are_the_same_bit_for_bit(recorded, tmp_path, way):
    done = run("jax", SCRIPT, way, tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["losses"] == recorded(way)[1]["losses"]


def test_pmap_is_told_by_the_name_of_the_scripts_function(recorded):
    there, _ = recorded("decorated")
    found = rows("jax", there, """
        SELECT DISTINCT name FROM events
        WHERE name LIKE 'dispatch %' OR name LIKE 'compilation % of update%' ORDER BY name
    """)  # fmt: skip
    names = [row["name"] for row in found]
    assert names[-1] == "dispatch update"
    assert names[0].startswith("compilation 1 of update at ") and "compiling.py:" in names[0]


def test_a_step_of_pmap_has_phases_and_exchanges_gradients(recorded):
    there, _ = recorded("mapped")
    (spent,) = rows("jax", there, """
        SELECT sum(forward_ns) AS forward, sum(backward_ns) AS backward, sum(update_ns) AS updating,
               sum(all_reduce_ns) AS exchanging FROM steps
    """)  # fmt: skip
    assert all(ns > 0 for ns in spent.values())
    (found,) = rows("jax", there, "SELECT count(*) AS n FROM events WHERE kind = 'collective'")
    assert found["n"] >= 4
