"""Real traces of every device and age, counted against their JSON."""

import gzip
import json
import math
from collections import Counter

import pytest

from strobe.ingest.formats.kineto import reader as kineto
from strobe.ingest.importing.sources import peek
from strobe.model.manifest import read_manifest
from tests.ingest.imports import TORCH, imported, shared, span, write

TRACES = sorted(path.relative_to(TORCH).as_posix() for path in TORCH.rglob("*.json.gz"))
DEVICE = ("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events")
CALLS = ("cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime")
TRACKS_UNUSED = """
    SELECT count(*) FROM tracks t
    WHERE device LIKE '%:%' AND NOT EXISTS (FROM events WHERE track_id = t.id)
"""
TRACKS = """
    SELECT t.device, t.name, count(*) FROM tracks t JOIN events e ON e.track_id = t.id
    WHERE t.device <> 'steps' GROUP BY ALL ORDER BY 1, 2
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_every_span_of_a_real_trace_is_there(tmp_path, name):
    path = shared(name)
    run = imported(path, tmp_path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    spans = [e for e in events if e.get("ph") == "X" and e["cat"] != "Trace"]
    rows = run.sql("SELECT kind, count(*) FROM events GROUP BY 1").fetchall()
    kinds = {kind: count for kind, count in rows if kind not in ("step", "phase")}
    assert sum(kinds.values()) == len(spans)
    wanted = Counter(filter(None, map(expected_kind, spans)))
    assert {kind: count for kind, count in kinds.items() if kind in wanted} == wanted
    numbers = {e["args"]["correlation"] for e in spans if e["cat"] in CALLS}
    work = [e for e in spans if e["cat"] in DEVICE]
    launched = [e for e in work if e["args"].get("correlation", 0) in numbers - {0}]
    found = run.sql(
        "SELECT count(*), count(l.id), count(l.id) FILTER (l.kind IN ('runtime', 'sync'))"
        " FROM kernel_args a JOIN events e ON e.id = a.event_id"
        " LEFT JOIN events l ON l.id = e.launcher_id"
    ).fetchall()
    assert found == [(len(work), len(launched), len(launched))]
    assert run.sql(TRACKS_UNUSED).fetchall() == [(0,)]


def expected_kind(event: dict) -> str | None:
    """What category and name say at first sight; None where more is needed."""
    category, name = event["cat"], event["name"]
    if category in ("gpu_memset", "Memset"):
        return "memset"
    if category in ("gpu_memcpy", "Memcpy") or name == "dma_request":
        return "memcpy"
    if category == "cuda_sync" or (category in CALLS and "Synchronize" in name):
        return "sync"
    return "module" if name.startswith("nn.Module: ") else None


def test_all_kernels_of_a_graph_are_of_its_launch(tmp_path):
    run = imported(shared("tracelens/vllm_decode_full_graph_execution.json.gz"), tmp_path)
    rows = run.sql(
        "SELECT l.name, count(*) FROM events k JOIN events l ON l.id = k.launcher_id"
        " WHERE k.kind = 'kernel' GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
    ).fetchall()
    assert rows == [("hipGraphLaunch", 421)]


def test_a_kernel_leads_to_the_operator_that_launched_it(tmp_path):
    """By its launcher's parent; Kineto's own external id says the same."""
    path = shared("hta/nccl_data.json.gz")
    run = imported(path, tmp_path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    theirs = Counter(
        names[e["args"]["External id"]] for e in events
        if e.get("cat") == "kernel" and "nccl" not in e["name"]
    )  # fmt: skip
    ours = run.sql(
        "SELECT p.name, count(*) FROM events k JOIN events l ON l.id = k.launcher_id"
        " JOIN events p ON p.id = l.parent_id WHERE k.kind = 'kernel' GROUP BY 1"
    ).fetchall()
    assert dict(ours) == theirs


def test_external_ids_that_are_copies_of_correlation_numbers_link_nothing(tmp_path):
    """In 2022 both were one number: 614 kernels whose launch was not seen stay without one."""
    run = imported(shared("hta/trace_diff/test.json.gz"), tmp_path)
    rows = run.sql(
        "SELECT count(*) FROM kernel_args JOIN events ON id = event_id WHERE launcher_id IS NULL"
    ).fetchall()
    assert rows == [(614,)]


def test_such_copies_are_not_taken_for_operators(tmp_path):
    stream = {"pid": 0, "tid": 7, "device": 0, "stream": 7}
    run = imported(write(tmp_path / "a.json", [
        span("aten::mm", 0, 9, **{"External id": 31}),
        span("cudaLaunchKernel", 1, 2, "cuda_runtime", correlation=30, **{"External id": 30}),
        span("gemm", 10, 20, "kernel", correlation=30, **{"External id": 30}, **stream),
        span("launched before", 20, 30, "kernel", correlation=31, **{"External id": 31}, **stream),
    ]), tmp_path)  # fmt: skip
    rows = run.sql("SELECT launcher_id IS NULL FROM events WHERE kind = 'kernel' ORDER BY id")
    assert rows.fetchall() == [(False,), (True,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("hta/critical_path_alexnet.json.gz", {"cuda:0": 5}),  # 2 streams, and their waits
        ("hta/trace_diff/control.json.gz", {"cuda:3": 4}),
        ("hta/mtia_rank_0.json.gz", {"mtia:9": 3}),
        ("tracelens/mi300_timesformer.json.gz", {"hip:0": 1}),  # ROCm calls it 2
        ("tracelens/mi210_gpu_only_trace.json.gz", {"hip:1": 1}),
    ],
)
def test_streams_are_tracks_of_their_device(tmp_path, name, devices):
    run = imported(shared(name), tmp_path)
    tracks = run.sql(TRACKS).fetchall()
    assert Counter(device for device, _, _ in tracks if device != "cpu") == devices


def test_waits_lie_beside_the_work_of_their_stream(tmp_path):
    run = imported(shared("hta/critical_path_alexnet.json.gz"), tmp_path)
    tracks = [row[1:] for row in run.sql(TRACKS).fetchall() if row[0] == "cuda:0"]
    assert tracks == [
        ("Device 0: waits", 5),
        ("stream 20", 7),
        ("stream 20: waits", 4),
        ("stream 7", 91),
        ("stream 7: waits", 32),
    ]


def test_kernels_say_how_they_were_launched(tmp_path):
    path = shared("hta/nccl_data.json.gz")
    run = imported(path, tmp_path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    args = [e["args"] for e in events if e.get("cat") == "kernel"]
    rows = run.sql(
        "SELECT sum(registers), sum(shared_memory_bytes), sum(occupancy_ratio), max(grid)"
        " FROM kernel_args WHERE registers IS NOT NULL"
    ).fetchall()
    ((registers, memory, occupancy, grid),) = rows
    assert registers == sum(a["registers per thread"] for a in args)
    assert memory == sum(a["shared memory"] for a in args)
    assert math.isclose(occupancy, sum(a["est. achieved occupancy %"] for a in args) / 100)
    assert len(json.loads(grid)) == 3


def test_memory_events_without_addresses_are_a_level(tmp_path):
    """2021: bytes taken and given back. The level never falls below nothing."""
    path = shared("kineto/resnet50_num_workers_4.1623212756351.pt.trace.json.gz")
    run = imported(path, tmp_path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    changes = [e for e in events if e.get("name") == "[memory]"]
    for device, kind in (("cpu", 0), ("cuda:0", 1)):
        mine = [e for e in changes if e["args"]["Device Type"] == kind]
        level = lowest = highest = 0
        for event in sorted(mine, key=lambda e: e["ts"]):
            level += event["args"]["Bytes"]
            lowest = min(lowest, level)
        level = -lowest
        for event in sorted(mine, key=lambda e: e["ts"]):
            level += event["args"]["Bytes"]
            highest = max(highest, level)
        ((last, least, most),) = run.sql(
            "SELECT last(value ORDER BY ts_ns), min(value), max(value) FROM counters"
            f" WHERE name = '{device} memory_bytes'"
        ).fetchall()
        assert last == level and least >= 0 and most <= highest
    assert run.sql("SELECT count(*) FROM problems").fetchall() == [(0,)]


def test_memory_events_say_the_level_themselves(tmp_path):
    path = shared("tracelens/h100_bert-small.json.gz")
    run = imported(path, tmp_path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    totals = [e["args"] for e in events
              if e.get("name") == "[memory]" and e["args"]["Device Type"] == 1]  # fmt: skip
    ((most,),) = run.sql("SELECT max(value) FROM counters WHERE name = 'cuda:0 memory_bytes'"
                         ).fetchall()  # fmt: skip
    assert most == max(total["Total Allocated"] for total in totals)
    rows = run.sql("SELECT device, count(*) FROM allocations GROUP BY 1 ORDER BY 1").fetchall()
    taken = Counter(
        e["args"]["Device Type"] for e in events
        if e.get("name") == "[memory]" and e["args"]["Bytes"] > 0
    )  # fmt: skip
    assert rows == [("cpu", taken[0]), ("cuda:0", taken[1])]


def test_the_header_tells_of_the_process(tmp_path):
    imported(shared("tracelens/b200_eager_trace.json.gz"), tmp_path)
    (rank,) = read_manifest(tmp_path / "run").ranks
    assert (rank.rank, rank.world_size, rank.pid) == (0, 8, 6583)
    assert rank.devices[0] == "cuda:0 NVIDIA B200" and len(rank.devices) == 8
    assert rank.frameworks["cuda"] == "12.9" and rank.frameworks["nccl"] == "2.27.5"


def test_host_and_thread_names(tmp_path):
    run = imported(shared("hta/ns_resolution_rank-0.pt.trace.json.gz"), tmp_path)
    (rank,) = read_manifest(tmp_path / "run").ranks
    assert rank.host == "twshared39868.02.pnb3.facebook.com"
    names = {name for device, name, _ in run.sql(TRACKS).fetchall() if device == "cpu"}
    assert {"thread 1102 (pt_main_thread)", "thread 1262 (pt_autograd_0)"} <= names


def rank_of(path) -> int | None:
    found = kineto.recognise(peek(path))
    assert found is not None
    return found.rank


def test_the_rank_is_that_of_the_header_then_of_the_name_then_of_the_folder(tmp_path):
    events = [span("aten::mm", 0, 1)]
    folder = tmp_path / "rank_3"
    folder.mkdir()
    said = {"distributedInfo": {"backend": "nccl", "rank": 5, "world_size": 8}}
    assert rank_of(write(folder / "rank7.json", events, **said)) == 5
    assert rank_of(write(folder / "my-Rank-7.json", events)) == 7
    assert rank_of(write(folder / "trace.json", events)) == 3
    assert rank_of(write(tmp_path / "trace.json", events)) is None
    assert rank_of(write(tmp_path / "frank5.json", events)) is None


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_header_behind_the_events_is_found(tmp_path, pack):
    events = [span("aten::mm", i, i + 1, note="x" * 100) for i in range(1000)]
    text = json.dumps({"traceEvents": events, "distributedInfo": {"rank": 6, "world_size": 8},
                       "baseTimeNanoseconds": 0, "host_name": "h"})  # fmt: skip
    path = tmp_path / "rank_1.json"
    path.write_bytes(pack(text.encode()))
    assert rank_of(path) == 6
    imported(path, tmp_path)
    (rank,) = read_manifest(tmp_path / "run").ranks
    assert (rank.rank, rank.world_size, rank.host) == (6, 8, "h")


def test_a_file_read_in_pieces_gives_the_same(tmp_path, monkeypatch):
    path = shared("tracelens/mi300_resnet_act_checkpoint.json.gz")
    whole = imported(path, tmp_path / "whole")
    pieces = kineto.kineto.pieces
    monkeypatch.setattr(kineto.kineto, "pieces", lambda p, _: pieces(p, 5000, 1 << 20))
    in_pieces = imported(path, tmp_path / "pieces")
    for question in (
        "SELECT kind, name, scope, step, ts_ns, dur_ns FROM events ORDER BY ALL",
        "SELECT * EXCLUDE event_id FROM collective_args ORDER BY ALL",
        "SELECT device, name FROM tracks ORDER BY ALL",
    ):
        assert whole.sql(question).fetchall() == in_pieces.sql(question).fetchall()
