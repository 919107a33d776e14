"""Real traces all the way into the tables."""

import json
import random
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch
from torch._C._profiler import _RecordFunctionFast
from torch.utils.flop_counter import FlopCounterMode

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.building.rank_tables import build_rank
from tests.helpers import text
from tests.ingest.runs import plain_steps, write_raw
from tests.ingest.traces import MODELS, one_step, record

SHARED = Path(__file__).parents[4] / "shared" / "data" / "torch"


def named(module, key: str):
    """Wrap a module's forward as the recorder does."""
    forward = module.forward

    def wrapped(*args):
        with _RecordFunctionFast(f"strobe:{key}"):
            return forward(*args)

    module.forward = wrapped


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run whose window is one training step of the convolutional network, and its FLOPs."""
    folder = tmp_path_factory.mktemp("run")
    model, x = MODELS["cnn"][0](), torch.randn(MODELS["cnn"][1])
    with FlopCounterMode(display=False) as counter:
        one_step(model, x)
    entries = {}
    for number, (path, module) in enumerate(model.named_modules()):
        named(module, str(number))
        entries[str(number)] = {"path": path, "class": type(module).__name__}
    raw = write_raw(folder)
    record(raw / "window-0001.trace.json", lambda: one_step(model, x), profile_memory=True)
    (raw / "window-0001.names.json").write_text(json.dumps({"modules": entries}))
    return folder, counter


def test_flops_of_modules_are_those_of_flop_counter_mode(recorded):
    folder, counter = recorded
    run = open_run_dir(folder)
    ours = dict(
        run.sql(
            "SELECT scope, sum(flops)::BIGINT FROM op_args JOIN events ON id = event_id"
            " WHERE flops IS NOT NULL GROUP BY scope"
        ).fetchall()
    )
    counts = {path: sum(ops.values()) for path, ops in counter.get_flop_counts().items()}
    assert ours == {path: counts[f"Cnn.{path}"] for path in ("layers.0", "layers.2", "layers.3")}
    assert sum(ours.values()) == counter.get_total_flops()
    backward = run.sql("SELECT sum(flops)::BIGINT FROM op_args WHERE is_backward").fetchall()
    forward = run.sql("SELECT sum(flops)::BIGINT FROM op_args WHERE NOT is_backward").fetchall()
    assert backward[0][0] > forward[0][0] > 0


def test_every_operator_of_the_backward_pass_below_a_module_knows_it(recorded):
    run = open_run_dir(recorded[0])
    table = run.sql(
        "SELECT DISTINCT split_part(e.name, ': ', 2) AS node, scope FROM events e"
        " WHERE e.name LIKE 'autograd::engine%Convolution%' OR e.name LIKE '%: Relu%' ORDER BY 1, 2"
    )
    assert text(table) == (
        "node scope\nConvolutionBackward0 layers.0\nConvolutionBackward0 layers.2\n"
        "ConvolutionBackward0 layers.3\nReluBackward0 layers.1"
    )


def test_allocations_happen_inside_operators_and_add_up(recorded):
    folder, _ = recorded
    run = open_run_dir(folder)
    instants = json.loads((folder / "rank_0/raw/window-0001.trace.json").read_text())["traceEvents"]
    sizes = [e["args"]["Bytes"] for e in instants if e["name"] == "[memory]"]
    (row,) = run.sql(
        "SELECT count(*), sum(bytes)::BIGINT, count(event_id) FROM allocations"
    ).fetchall()
    grown = [size for size in sizes if size > 0]
    assert row[:2] == (len(grown), sum(grown))
    assert row[2] > 0.9 * row[0]
    kinds = run.sql(
        "SELECT DISTINCT kind FROM allocations a JOIN events ON id = event_id"
        " WHERE a.ts_ns NOT BETWEEN events.ts_ns AND events.ts_ns + dur_ns"
    )
    assert kinds.fetchall() == []


def test_children_lie_in_their_parents(recorded):
    outside = open_run_dir(recorded[0]).sql(
        "SELECT c.name, p.name FROM events c JOIN events p ON c.parent_id = p.id"
        " WHERE c.ts_ns < p.ts_ns OR c.ts_ns > p.ts_ns + p.dur_ns OR c.track_id <> p.track_id"
    )
    assert outside.fetchall() == []


def damaged(data: bytes, rng: random.Random) -> bytes:
    result = bytearray(data)
    for _ in range(rng.choice([1, 5, 40])):
        place = rng.randrange(len(result))
        junk = rng.choice([b"", b'"', b"}", b"[", b"null", b"1e308", b"9" * 30, b"\xff", b"-1"])
        result[place : place + rng.randrange(4)] = junk
    return bytes(result)


def test_damage_of_any_kind_gives_tables(recorded, tmp_path):
    rng = random.Random(9)
    raw = write_raw(tmp_path, plain_steps(5))
    shutil.copy(recorded[0] / "rank_0/raw/window-0001.trace.json", raw)
    shutil.copy(recorded[0] / "rank_0/raw/window-0001.names.json", raw)
    whole = {path: path.read_bytes() for path in raw.iterdir()}
    for _ in range(12):
        for path, data in whole.items():
            path.write_bytes(damaged(data, rng))
        build_rank(raw, 0, 0, tmp_path)
        assert (tmp_path / "events.parquet").exists()


@pytest.mark.parametrize(
    ("name", "kernels", "launched"),
    [
        ("hta/critical_path_alexnet.json.gz", 98, 98),
        ("tracelens/mi210_gpu_only_trace.json.gz", 562, 562),
        ("hta/two_ranks/rank-0.json.gz", 1204, 1204),
    ],
)
def test_kernels_of_others_find_their_launch(tmp_path, name, kernels, launched):
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not here")
    raw = write_raw(tmp_path)
    shutil.copy(SHARED / name, raw / "window-0001.trace.json.gz")
    (raw / "window-0001.names.json").write_text("{}")
    run = open_run_dir(tmp_path)
    counts = run.sql(
        "SELECT count(*), count(h.id) FROM kernel_args JOIN events k ON k.id = event_id"
        " LEFT JOIN events h ON h.id = k.launcher_id AND h.kind IN ('runtime', 'sync', 'op')"
    )
    assert counts.fetchall() == [(kernels, launched)]
    assert run.sql("SELECT * FROM problems").fetchall() == []
