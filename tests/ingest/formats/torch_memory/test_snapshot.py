import gzip
import os
import pickle

import pytest

from strobe.cli import main
from tests.ingest.imports import imported

START = 1_700_000_000_000_000  # microseconds
STACK = [
    {"filename": "/usr/lib/python3/torch/nn/modules/linear.py", "line": 125, "name": "forward"},
    {"filename": "??", "line": 0, "name": "at::empty"},
    {"filename": "train.py", "line": 14, "name": "step"},
    {"filename": "train.py", "line": 30, "name": "<module>"},
]


def entry(action: str, at: int, address: int, size: int, frames=(), **more) -> dict:
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": list(frames),
            "time_us": START + at, **more}  # fmt: skip


def block(address: int, size: int, state: str = "active_allocated") -> dict:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": []}


def segment(device: int, address: int, *blocks: dict) -> dict:
    total = sum(b["size"] for b in blocks)
    return {"device": device, "address": address, "total_size": total, "stream": 0,
            "segment_type": "small", "allocated_size": 0, "active_size": 0,
            "blocks": list(blocks)}  # fmt: skip


# The history: a segment of 4096 comes; 512 taken and kept; 1024 taken and freed; 256, taken
# before the history, freed. Another 128 lie there from before and stay.
SNAPSHOT = {
    "segments": [
        segment(0, 1000, block(1000, 512), block(1512, 3584, "inactive")),
        segment(0, 9000, block(9000, 256, "inactive"), block(9256, 128)),
    ],
    "device_traces": [
        [
            entry("segment_alloc", 0, 1000, 4096, STACK),
            entry("alloc", 0, 1000, 512, STACK),
            entry("alloc", 5, 2024, 1024),
            entry("free_requested", 7, 2024, 1024),
            entry("free_completed", 9, 2024, 1024),
            entry("free_completed", 10, 9000, 256),
            entry("oom", 11, 0, 2 << 30, STACK, device_free=1 << 20),
            entry("snapshot", 12, 0, 0),
        ],
        [],
    ],
    "allocator_settings": {"garbage_collection_threshold": 0.0},
}


def write(path, snapshot, pack=bytes, protocol=4):
    path.write_bytes(pack(pickle.dumps(snapshot, protocol)))
    return path


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_history_becomes_allocations(tmp_path, pack, protocol):
    run = imported(write(tmp_path / "s.pickle", SNAPSHOT, pack, protocol), tmp_path)
    rows = run.sql(
        "SELECT a.ts_ns // 1000, freed_ns // 1000, bytes, device, e.name FROM allocations a"
        " LEFT JOIN events e ON e.id = event_id ORDER BY a.ts_ns, bytes"
    ).fetchall()
    assert rows == [
        (0, None, 128, "cuda:0", None),
        (0, 10, 256, "cuda:0", None),
        (0, None, 512, "cuda:0", "train.py(14): step < train.py(30): <module>"),
        (5, 9, 1024, "cuda:0", "allocation"),
    ]
    assert run.sql("SELECT * FROM problems").fetchall() == []


def test_counters_are_levels_of_the_allocator(tmp_path):
    run = imported(write(tmp_path / "s.pickle", SNAPSHOT), tmp_path)
    rows = run.sql(
        "SELECT name, ts_ns // 1000, value FROM counters ORDER BY name, ts_ns"
    ).fetchall()
    assert rows == [
        ("cuda:0 memory_bytes", 0, 384),
        ("cuda:0 memory_bytes", 0, 896),
        ("cuda:0 memory_bytes", 5, 1920),
        ("cuda:0 memory_bytes", 9, 896),
        ("cuda:0 memory_bytes", 10, 640),
        ("cuda:0 reserved_bytes", 0, 4096 + 384),
    ]


def test_out_of_memory_is_a_mark(tmp_path):
    run = imported(write(tmp_path / "s.pickle", SNAPSHOT), tmp_path)
    rows = run.sql("SELECT ts_ns // 1000, name FROM events WHERE kind = 'mark' ORDER BY id")
    assert rows.fetchall() == [
        (11, "out of memory: 2.00 GiB asked for, 1.00 MiB free"),
        (12, "memory snapshot"),
    ]


def test_segments_alone_are_allocations_of_one_moment(tmp_path):
    """torch.cuda.memory_snapshot(), and blocks that do not say where they lie (before 2.1)."""
    old = {"size": 64, "state": "active_allocated"}
    segments = [segment(1, 100, {"size": 36, "state": "inactive"}, old)]
    run = imported(write(tmp_path / "s.pickle", segments), tmp_path)
    rows = run.sql("SELECT address, bytes, device, freed_ns FROM allocations").fetchall()
    assert rows == [(136, 64, "cuda:1", None)]
    ((what,),) = run.sql("SELECT what FROM problems").fetchall()
    assert "no history" in what


def test_old_histories_without_times_keep_their_order(tmp_path):
    entries = [entry("alloc", 0, 1, 10), entry("free", 0, 1, 10)]
    for one in entries:
        del one["time_us"]
    snapshot = {"segments": [], "device_traces": [entries]}
    run = imported(write(tmp_path / "s.pickle", snapshot), tmp_path)
    assert run.sql("SELECT freed_ns - ts_ns FROM allocations").fetchall() == [(1000,)]
    ((what,),) = run.sql("SELECT what FROM problems").fetchall()
    assert "no times" in what


def test_odd_content_is_counted_and_the_rest_is_read(tmp_path):
    odd = [
        None,
        3,
        {"action": 5},
        {"action": "alloc"},
        entry("alloc", 3, 7, 20, [None, {"line": "x"}]),
    ]
    snapshot = {
        "segments": [None, {"blocks": 3}, {"device": "x", "blocks": [None]}],
        "device_traces": [odd, "nothing", None],
    }
    run = imported(write(tmp_path / "s.pickle", snapshot), tmp_path)
    assert run.sql("SELECT bytes FROM allocations WHERE bytes > 0").fetchall() == [(20,)]
    assert len(run.sql("SELECT * FROM problems").fetchall()) >= 1


class Runs:
    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_hostile_pickle_runs_nothing_and_says_so(tmp_path, capsys):
    hostile = {"segments": [], "device_traces": [Runs(tmp_path / "ran")]}
    path = write(tmp_path / "s.pickle", hostile)
    main(["import", str(path), "-o", str(tmp_path / "run")])
    assert not (tmp_path / "ran").exists()
    said = capsys.readouterr()
    told = said.err + said.out + _problems(tmp_path)
    assert "asks for code to be run" in told


def _problems(folder) -> str:
    from strobe.ingest.building.opening import open_run_dir

    if not (folder / "run").exists():
        return ""
    return str(open_run_dir(folder / "run").sql("SELECT what FROM problems").fetchall())
