"""The same profile, by other tools: JAX's own reader and cost model, XProf, a stopwatch.

Where JAX is not installed these are skipped; numbers that were once compared stand in
test_xplane.py.
"""

import json
import shutil
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.store.run import Run
from tests.ingest.formats.xplane.test_reader import GEMM, NEW, OLD

jax = pytest.importorskip("jax", reason="JAX is not installed")
STEPS = 12


class Recorded:
    """A small training, recorded by JAX: its run, its file, its true length, its work."""

    def __init__(self, folder: Path) -> None:
        import jax.numpy as jnp

        def loss(w: Any, x: Any) -> Any:
            for layer in range(3):
                with jax.named_scope(f"layer_{layer}"):
                    x = jnp.tanh(x @ w)
            return x.sum()

        def train_step(w: Any, x: Any) -> Any:
            return w - 1e-6 * jax.grad(loss)(w, x)

        compiled = jax.jit(train_step)
        w, x = jnp.ones((384, 384)), jnp.ones((384, 384))
        self.flops = compiled.lower(w, x).compile().cost_analysis()["flops"]
        w = compiled(w, x).block_until_ready()
        with jax.profiler.trace(str(folder / "log")):
            began = time.perf_counter()
            for number in range(STEPS):  # sent off at once, run one after the other
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    w = compiled(w, x)
            self.announced_s = time.perf_counter() - began
            w.block_until_ready()
            self.seconds = time.perf_counter() - began
        (self.file,) = (folder / "log").rglob("*.xplane.pb")
        import_traces([folder / "log"], folder / "run")
        self.run = open_run_dir(folder / "run")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("jax"))


def sums(run: Run, where: str) -> dict[str, tuple[int, int]]:
    found = run.sql(
        "SELECT e.name, count(*), sum(dur_ns) FROM events e JOIN tracks t ON t.id = track_id"
        f" WHERE {where} GROUP BY 1"
    )
    return {name: (count, ns) for name, count, ns in found.fetchall()}


def test_events_are_those_that_jax_reads(recorded):
    theirs: dict[str, list[float]] = defaultdict(list)
    for plane in jax.profiler.ProfileData.from_file(str(recorded.file)).planes:
        for line in plane.lines:
            for event in line.events:
                if not event.name.startswith(("end: ", "ThreadpoolListener::")):
                    theirs[event.name].append(event.duration_ns)
    ours = sums(recorded.run, "device <> 'steps'")
    assert {name: count for name, (count, _) in ours.items()} == {
        name: len(lengths) for name, lengths in theirs.items()
    }
    for name, (count, ns) in ours.items():
        assert ns == pytest.approx(sum(theirs[name]), abs=count), name


def test_steps_last_as_long_as_the_stopwatch_says(recorded):
    """The host was done with announcing them long before they had run."""
    [(count, ns)] = recorded.run.sql(
        "SELECT count(*), sum(dur_ns) FROM events WHERE kind = 'step'"
    ).fetchall()
    assert count == STEPS
    assert ns / 1e9 == pytest.approx(recorded.seconds, rel=0.1)
    announced = sums(recorded.run, "kind = 'annotation' AND e.name = 'train'")["train"][1]
    assert announced / 1e9 < recorded.seconds


def test_products_have_the_work_that_the_compiler_counts(recorded):
    """Its count has the few operations of tanh and the update besides."""
    [(flops, calls)] = recorded.run.sql(
        "SELECT sum(flops), count(DISTINCT scope) FROM op_args JOIN events ON id = event_id"
    ).fetchall()
    assert flops / STEPS == pytest.approx(recorded.flops, rel=0.02) and calls == 3


def test_every_operation_of_the_training_has_its_direction(recorded):
    [(backward, forward)] = recorded.run.sql(
        "SELECT sum(flops) FILTER (is_backward), sum(flops) FILTER (NOT is_backward) FROM op_args"
    ).fetchall()
    # Three products forward; backward two for each layer but the first, whose input needs none.
    assert backward * 3 == forward * 5


@pytest.mark.parametrize("file", [NEW, OLD])
def test_kernels_are_those_of_xprof(tmp_path, file):
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data", reason="XProf is not installed")
    if not file.exists():
        pytest.skip("profiles of JAX on an MI300: shared data absent")
    copy = tmp_path / "log" / "host.xplane.pb"
    copy.parent.mkdir()
    shutil.copy(file, copy)  # XProf writes beside it
    table, _ = convert.xspace_to_tool_data([str(copy)], "kernel_stats", {})
    theirs: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    table = json.loads(table)
    columns = [column["id"] for column in table["cols"]]
    for row in table["rows"]:
        cells = dict(zip(columns, (cell["v"] for cell in row["c"]), strict=True))
        sum_of = theirs[cells["kernel_name"][: len(GEMM)]]
        sum_of[0] += cells["occurrences"]
        sum_of[1] += cells["total_duration_us"]
    import_traces([file], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    ours = sums(run, "device LIKE 'gpu:%' AND e.name <> 'CopyDeviceToDevice'")
    assert {
        name[: len(GEMM)]: [count, pytest.approx(ns / 1000)] for name, (count, ns) in ours.items()
    } == dict(theirs)
