"""A run of any number of events, drawn: steps, nested host operators, kernels, flows, counters.

It is an imported trace of one event whose tables are then replaced: reading ten million events from
JSON is measured elsewhere (benchmarks/ingest.py), here it would only take long.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from strobe.model.schema import COUNTERS, EVENTS, LINKS, OP_ARGS, TRACKS
from strobe.store import columns
from strobe.store.strings import Strings

SPAN_NS = 60_000_000_000
STREAMS, THREADS, DEPTH = 16, 34, 6
STEPS = 200
_NAMES = [f"aten::operator_{n}" for n in range(180)] + [f"kernel_{n}<float>" for n in range(60)]


def draw(folder: Path, events: int, seed: int = 1) -> Path:
    """The folder of a run with about so many events, on 50 tracks of 220 rows."""
    from strobe.cli import main

    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "one.json"
        one = {"ph": "X", "pid": 1, "tid": 1, "name": "one", "ts": 0, "dur": 1}
        trace.write_text(json.dumps({"traceEvents": [one]}))
        run = folder / f"drawn_{events}"
        assert main(["import", str(trace), "-o", str(run), "-q"]) == 0
        import strobe

        strobe.open_run(run).close()
    tables = run / "rank_0" / "tables"
    random = np.random.default_rng(seed)
    parts = [_steps()] + [
        _track(random, number, events // (STREAMS + THREADS))
        for number in range(1, STREAMS + THREADS + 1)
    ]
    drawn = _joined(parts)
    kinds = ["step", "phase", "op", "kernel"]
    names = [*_NAMES, "forward", "backward", *(f"step {n}" for n in range(1, STEPS + 1))]
    columns.write(
        EVENTS,
        {
            "id": np.arange(len(drawn["ts_ns"])),
            "track_id": drawn["track"],
            "ts_ns": drawn["ts_ns"],
            "dur_ns": drawn["dur_ns"],
            "kind": Strings(drawn["kind"].astype(np.int32), kinds),
            "name": Strings(drawn["name"].astype(np.int32), names),
            "step": drawn["ts_ns"] // (SPAN_NS // STEPS) + 1,
            "parent_id": np.ma.masked_less(drawn["parent"], 0),
        },
        tables / "events.parquet",
    )
    _write_rest(tables, drawn, random)
    return run


def _steps() -> dict[str, np.ndarray]:
    length = SPAN_NS // STEPS
    start = np.arange(STEPS) * length
    name = np.arange(STEPS) + len(_NAMES) + 2
    phase = np.repeat(start, 2) + np.tile([0, length // 3], STEPS)
    return {
        "track": np.zeros(3 * STEPS, dtype=np.int64),
        "ts_ns": np.concatenate([start, phase]),
        "dur_ns": np.concatenate(
            [np.full(STEPS, length), np.tile([length // 3, length - length // 3], STEPS)]
        ),
        "kind": np.repeat([0, 1], [STEPS, 2 * STEPS]),
        "name": np.concatenate([name, np.tile([0, 1], STEPS) + len(_NAMES)]),
        "parent": np.concatenate([np.full(STEPS, -1), np.repeat(np.arange(STEPS), 2)]),
    }


def _track(random: np.random.Generator, number: int, events: int) -> dict[str, np.ndarray]:
    """Kernels one after the other, or operators with others inside, half of the time busy."""
    depths = 1 if number <= STREAMS else DEPTH
    outer = max(1, events // depths)
    gaps = random.exponential(1.0, 2 * outer + 1)
    borders = (np.cumsum(gaps) / gaps.sum() * SPAN_NS).astype(np.int64)
    start, length = borders[0:-1:2], borders[1::2] - borders[0:-1:2]
    parts, parent, before = [], np.full(outer, -1, dtype=np.int64), 0
    for depth in range(depths):
        kind = 3 if depths == 1 else 2
        names = random.integers(0, 60, len(start)) + (180 if depths == 1 else 30 * depth)
        parts.append(
            {
                "track": np.full(len(start), number),
                "ts_ns": start,
                "dur_ns": length,
                "kind": np.full(len(start), kind),
                "name": np.minimum(names, len(_NAMES) - 1),
                "parent": parent,
            }
        )
        parent = np.arange(len(start)) + before
        before += len(start)
        inset = length // 8
        start, length = start + inset, length - 2 * inset
    return _joined(parts)


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    before, shifted = 0, []
    for part in parts:
        is_own = len(parts) > DEPTH  # parts of a track count their parents through already
        shifted.append(np.where(part["parent"] >= 0, part["parent"] + before * is_own, -1))
        before += len(part["ts_ns"])
    joined["parent"] = np.concatenate(shifted)
    return joined


def _write_rest(tables: Path, drawn: dict[str, np.ndarray], random: np.random.Generator) -> None:
    tracks = STREAMS + THREADS + 1
    devices = ["steps", *(f"cuda:{n // 4}" for n in range(STREAMS)), *["cpu"] * THREADS]
    names = ["steps", *(f"stream {n % 4}" for n in range(STREAMS)),
             *(f"thread {n}" for n in range(THREADS))]  # fmt: skip
    columns.write(
        TRACKS,
        {
            "id": np.arange(tracks),
            "rank": np.zeros(tracks, dtype=np.int64),
            "device": Strings(np.arange(tracks, dtype=np.int32), devices),
            "name": Strings(np.arange(tracks, dtype=np.int32), names),
        },
        tables / "tracks.parquet",
    )
    kernels = np.flatnonzero(drawn["kind"] == 3)[::4]
    operators = np.flatnonzero((drawn["kind"] == 2) & (drawn["parent"] < 0))
    chosen = operators[random.integers(0, len(operators), len(kernels))]
    columns.write(
        LINKS,
        {
            "from_id": chosen,
            "to_id": kernels,
            "kind": Strings(np.zeros(len(kernels), dtype=np.int32), ["launch"]),
        },
        tables / "links.parquet",
    )
    columns.write(
        OP_ARGS,
        {
            "event_id": operators,
            "input_shapes": Strings(np.zeros(len(operators), dtype=np.int32), ["[[64, 256]]"]),
            "is_backward": np.zeros(len(operators), dtype=bool),
        },
        tables / "op_args.parquet",
    )
    moments = np.sort(random.integers(0, SPAN_NS, 100_000))
    columns.write(
        COUNTERS,
        {
            "rank": np.zeros(len(moments), dtype=np.int64),
            "ts_ns": moments,
            "name": Strings(np.zeros(len(moments), dtype=np.int32), ["host_memory_bytes"]),
            "value": np.cumsum(random.normal(0, 1e6, len(moments))) + 8e9,
        },
        tables / "counters.parquet",
    )
