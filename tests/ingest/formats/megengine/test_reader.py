"""MegEngine's timelines and static profiles, real ones and drawn ones, become tables."""

import gzip
import json
from pathlib import Path

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from tests.helpers import text

DATA = Path(__file__).resolve().parents[5] / "shared" / "data" / "megengine"
STEPS4 = "real/chrome_timeline.4steps.json"


def as_written(name: str):
    """A file of the shared data as the plain JSON it is."""
    if not DATA.exists():
        pytest.skip("MegEngine's shared data absent")
    return json.loads((DATA / name).read_text())


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The run of a file or folder of the shared data, imported once."""
    known = {}

    def run_of(name: str):
        if not DATA.exists():
            pytest.skip("MegEngine's shared data absent")
        if name not in known:
            known[name] = made(DATA / name, tmp_path_factory.mktemp("run") / "run")
        return known[name]

    yield run_of
    for run in known.values():
        run.close()


def made(path: Path, run: Path):
    import_traces([path], run)
    return open_run_dir(run)


def drawn(tmp_path, events, name="7.chrome_timeline.json", **header):
    """The run of a timeline with these events; the first tells whose it is."""
    path = tmp_path / name
    mark = {"name": "gpu_usgae_ratio", "ph": "C", "pid": 7, "tid": 0, "ts": 0, "args": {"value": 0}}
    text = json.dumps({"traceEvents": [mark, *events], **header}, separators=(",", ":"))
    path.write_text(text)
    return made(path, tmp_path / "run")


def span(name, began, ended, tid=0, pid=7, **args):
    kind = {"cat": args.pop("cat")} if "cat" in args else {}
    return [
        {"name": name, "ph": "B", "pid": pid, "tid": tid, "ts": began, **kind},
        {"name": name, "ph": "E", "pid": pid, "tid": tid, "ts": ended, **kind, "args": args},
    ]


def thread(tid, name, pid=7):
    return {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


# --- the timeline -------------------------------------------------------------------------


def test_every_operator_has_its_dispatch_and_its_kernel(imported):
    run = imported(STEPS4)
    query = """
        SELECT count(*), count(k.id), count(d.id), bool_and(d.ts_ns <= o.ts_ns),
               bool_and(d.ts_ns <= k.ts_ns), bool_and(o.name = k.name)
        FROM events o LEFT JOIN events k ON k.launcher_id = o.id AND k.kind = 'kernel'
        LEFT JOIN links l ON l.to_id = o.id AND l.kind = 'dispatch'
        LEFT JOIN events d ON d.id = l.from_id
        WHERE o.kind = 'op'
    """
    assert run.sql(query).fetchall() == [(292, 292, 292, True, True, True)]


def test_steps_end_where_the_profiler_was_told(imported):
    run = imported(STEPS4)
    events = as_written(STEPS4)["traceEvents"]
    stops = sorted(e["ts"] for e in events if e["name"] == "StopStep" and e["tid"] == 1)
    ends = run.sql("SELECT ts_ns + dur_ns FROM events WHERE kind = 'step' ORDER BY 1").fetchall()
    assert [end - ends[0][0] for (end,) in ends] == [
        round(1000 * stop) - round(1000 * stops[0]) for stop in stops
    ]
    phases = run.sql("""
        SELECT step, list(name ORDER BY ts_ns), sum(dur_ns) FROM events WHERE kind = 'phase'
        GROUP BY step ORDER BY step
    """).fetchall()
    lengths = run.sql("SELECT dur_ns FROM events WHERE kind = 'step' ORDER BY step").fetchall()
    assert [total for _, _, total in phases] == [length for (length,) in lengths]
    assert phases[3][1] == ["gap", "forward", "backward", "update", "rest"]


def test_kernels_last_as_long_as_the_file_says(imported):
    events = as_written(STEPS4)["traceEvents"]
    edges = [(e["ph"], round(1000 * e["ts"])) for e in events if e.get("cat") == "Kernel"]
    total = sum(ts if phase == "E" else -ts for phase, ts in edges if phase in "BE")
    ((ours,),) = (
        imported(STEPS4).sql("SELECT sum(dur_ns) FROM events WHERE kind = 'kernel'").fetchall()
    )
    assert ours == total


def test_operators_know_module_direction_shapes_and_bytes(imported):
    found = imported(STEPS4).sql("""
        SELECT DISTINCT e.name, e.scope, is_backward, input_shapes, input_dtypes, output_shapes,
               flops, bytes FROM events e JOIN op_args a ON a.event_id = e.id
        WHERE e.name LIKE 'Conv%' OR (e.name = 'MatrixMul' AND NOT is_backward) ORDER BY 1
    """)
    conv = (4 * 3 * 256 + 8 * 3 * 9 + 4 * 8 * 256) * 4
    assert found.fetchall() == [
        ("Convolution", "conv1", False, "[[4,3,16,16],[8,3,3,3]]", '["Float32","Float32"]',
         "[[4,8,16,16]]", 2 * 27 * 4 * 8 * 256, conv),
        ("ConvolutionBackwardFilterV2", None, True, "[[4,3,16,16],[4,8,16,16],[8,3,3,3]]",
         '["Float32","Float32","Float32"]', "[[8,3,3,3]]", 2 * 27 * 4 * 8 * 256,
         conv + 8 * 3 * 9 * 4),
        ("MatrixMul", "fc", False, "[[4,2048],[10,2048]]", '["Float32","Float32"]', "[[4,10]]",
         2 * 4 * 2048 * 10, (4 * 2048 + 10 * 2048 + 4 * 10) * 4),
    ]  # fmt: skip


def test_counted_operations_are_those_of_the_static_profile(imported):
    """The footprint that MegEngine writes of the same network is the same for the same shapes."""
    query = """
        SELECT DISTINCT {family}, input_shapes, output_shapes, flops
        FROM events e JOIN op_args a ON a.event_id = e.id WHERE input_shapes IS NOT NULL
    """
    written = imported("real/get_profile.train.json").sql(query.format(family="e.name")).fetchall()
    static = {row[:3]: row[3] for row in written}
    family = """CASE WHEN concrete_inputs LIKE '%"mode":"' || e.name || '"%' THEN 'Elemwise'
        WHEN e.name = 'Convolution' THEN 'ConvolutionForward'
        WHEN e.name = 'ConvolutionBackwardFilterV2' THEN 'ConvolutionBackwardFilter'
        ELSE e.name END"""
    derived = imported(STEPS4).sql(query.format(family=family)).fetchall()
    both = [(row, static[row[:3]]) for row in derived if row[:3] in static]
    assert len(both) >= 15 and len({row[0] for row, _ in both}) >= 4
    # The static graph folds a broadcast into its operator, which then has fewer elements in it.
    assert [(row, count) for row, count in both if row[3] != count and row[0] != "Elemwise"] == []
    same = [row for row, count in both if row[3] == count]
    assert len(same) >= 0.8 * len(both)


def test_counters_have_their_names_and_units(imported):
    name = "real/chrome_timeline.sample_rate1.json"
    written = {}
    for event in as_written(name)["traceEvents"]:
        if event["ph"] == "C":
            written.setdefault(event["name"], []).append(event["args"]["value"])
    found = imported(name).sql(
        "SELECT name, count(*), max(value) FROM counters GROUP BY name ORDER BY name"
    )
    units = {
        "alive_tensors": ("nr_alive_tensor", 1), "cpu:0_used_bytes": ("cpu0:0_alloc_mem", 1),
        "device_ahead_ns": ("device_ahead_ms", 1e6), "pending_operators": ("nr_op_pending", 1),
        "redundant_tensors_total": ("nr_redunant_tensor", 1),
    }  # fmt: skip
    assert {name: (count, most) for name, count, most in found.fetchall()} == {
        ours: (len(written[theirs]), max(written[theirs]) * factor)
        for ours, (theirs, factor) in units.items()
    }


def test_the_lanes_and_what_is_on_them(imported):
    found = imported(STEPS4).sql("""
        SELECT t.name, t.device, e.kind, count(*) FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE t.device <> 'steps' GROUP BY ALL ORDER BY ALL
    """)
    assert found.fetchall() == [
        ("interpreter", "cpu", "annotation", 76), ("interpreter", "cpu", "mark", 616),
        ("interpreter", "cpu", "module", 20), ("interpreter", "cpu", "runtime", 8),
        ("interpreter", "cpu", "sync", 4),
        ("worker", "cpu", "annotation", 96), ("worker", "cpu", "mark", 4),
        ("worker", "cpu", "op", 292), ("worker", "cpu", "runtime", 554),
        ("worker", "cpu", "sync", 4),
        ("xpux:0", "cpu:0", "kernel", 292), ("xpux:0", "cpu:0", "memcpy", 13),
    ]  # fmt: skip


def test_without_a_device_there_are_operators_all_the_same(imported):
    run = imported("real/chrome_timeline.profile_device0.json")
    assert text(run.sql(
        "SELECT kind, count(*) AS n FROM events WHERE kind IN ('op', 'kernel') GROUP BY kind"
    )) == "kind n\nop 73"  # fmt: skip


def test_functions_that_are_scopes_too(imported):
    run = imported("real/chrome_timeline.backtrace_scopes.json")
    found = run.sql("""
        SELECT e.scope, e.name, a.node, a.concrete_inputs FROM events e JOIN op_args a
        ON a.event_id = e.id WHERE e.name IN ('Convolution', 'RELU') ORDER BY 1
    """).fetchall()
    assert [row[:3] for row in found] == [
        ("conv1.conv2d", "Convolution", "conv1.conv2d[1].Convolution"),
        ("relu.relu", "RELU", "relu.relu.RELU"),
    ]
    assert json.loads(found[1][3]) == {"mode": "RELU"}  # and no backtrace
    ((methods,),) = run.sql("SELECT count(*) FROM events WHERE kind = 'python'").fetchall()
    assert methods > 40


@pytest.mark.slow
def test_forked_ranks_are_in_the_order_of_their_pids_and_the_launcher_is_none(imported):
    run = imported("real/forked_ranks")
    found = run.sql("""
        SELECT t.rank, t.process, count(*), min(e.ts_ns) FROM events e
        JOIN tracks t ON t.id = e.track_id GROUP BY ALL ORDER BY 1
    """).fetchall()
    assert [(rank, pid) for rank, pid, _, _ in found] == [(0, 1087), (1, 1088)]
    # One clock: the profiler began before the fork.
    assert found[1][3] - found[0][3] == round((136672.115 - 80689.374) * 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["real/merge_pre_1.6", "real/merge_pre_1.6/merge.chrome_timeline.json"]
)
def test_files_of_before_1_6_and_what_was_merged_of_them(imported, name):
    found = (
        imported(name)
        .sql("""
        SELECT t.rank, t.process, t.name, e.ts_ns // 1000, e.dur_ns // 1000 FROM events e
        JOIN tracks t ON t.id = e.track_id ORDER BY 1
    """)
        .fetchall()
    )
    began = found[0][3]
    assert found == [(0, 100, "channel", began, 15), (1, 101, "channel", began + 500, 15)]


def test_cupti_joins_a_kernel_to_its_launch(tmp_path):
    def flow(phase, ts, tid, category="KernelLink"):
        return {"name": "7", "ph": phase, "cat": category, "id": 5, "pid": 7, "tid": tid, "ts": ts}

    launch, kernel = span("sgemm", 12, 14), span("sgemm", 30, 50, tid=9, execution_time=20000)
    copy = span("Memcpy", 60, 70, tid=9, bytes="4096",
                src_kind="CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE",
                dst_kind="CUPTI_ACTIVITY_MEMORY_KIND_DEVICE")  # fmt: skip
    begin, end = span("MatrixMul", 10, 20, __id__=3, __name__="MatrixMul")
    events = [begin, launch[0], flow("s", 12, 0), launch[1], end, kernel[0], flow("f", 50, 9),
              kernel[1], *copy, thread(0, "worker")]  # fmt: skip
    run = drawn(tmp_path, events)
    found = run.sql("""
        SELECT e.kind, e.name, t.device, l.kind, a.direction, a.host_memory, a.bytes
        FROM events e JOIN tracks t ON t.id = e.track_id LEFT JOIN events l ON l.id = e.launcher_id
        LEFT JOIN kernel_args a ON a.event_id = e.id ORDER BY e.ts_ns
    """).fetchall()
    assert found == [
        ("op", "MatrixMul", "cpu", None, None, None, None),
        ("runtime", "sgemm", "cpu", None, None, None, None),
        ("kernel", "sgemm", "cuda:0", "runtime", None, None, None),
        ("memcpy", "Memcpy", "cuda:0", None, "host to device", "pageable", 4096),
    ]
    run.close()


def test_a_collective_tells_what_it_does_and_its_rank(tmp_path):
    told = {"__id__": 3, "__name__": "CollectiveComm", "mode": "ALL_REDUCE_SUM", "rank": "2"}
    run = drawn(tmp_path, [
        *span("CollectiveComm", 10, 20, **told),
        *span("CollectiveComm", 15, 40, tid=1, cat="Kernel", **told),
        thread(0, "worker"), thread(1, "gpu2:0"),
    ])  # fmt: skip
    found = run.sql("""
        SELECT t.rank, t.device, e.kind, a.operation
        FROM events e JOIN tracks t ON t.id = e.track_id
        LEFT JOIN collective_args a ON a.event_id = e.id ORDER BY e.ts_ns
    """).fetchall()
    assert found == [(2, "cpu", "op", None), (2, "cuda:2", "collective", "all_reduce")]
    run.close()


def test_packed_and_dated(tmp_path):
    events = [{"name": "train_time_ratio", "ph": "C", "pid": 7, "tid": 0, "ts": 0,
               "args": {"value": 3.5}}, *span("MUL", 10, 20, __id__=1, __name__="MUL")]  # fmt: skip
    whole = {"traceEvents": events, "metadata": {"localTime": "1794765421504597408"}}
    path = tmp_path / "7.chrome_timeline.json.gz"
    path.write_bytes(gzip.compress(json.dumps(whole).encode()))
    run = made(path, tmp_path / "run")
    assert run.manifest.started_unix_ns == pytest.approx(1794765421504597408, abs=20_000)
    assert [what for (what,) in run.sql("SELECT what FROM problems").fetchall()] == [
        "gpu_usgae_ratio and train_time_ratio were left out: they do not agree with the kernels of"
        " the same file, which the table device-time counts"
    ]
    run.close()


# --- the static profile -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["hand.json", "real/get_profile.train.json", "real/get_profile.infer.json",
             "real/load_and_run.profile.json"],
)  # fmt: skip
def test_every_operator_that_ran_has_its_times(imported, name):
    document = as_written(name)
    expected = {}
    for side in ("host", "device"):
        for key, places in document["profiler"][side].items():
            lengths = [(round(1e9 * p["end"]) - round(1e9 * p["start"]),
                        round(1e9 * p["kern"]) - round(1e9 * p["start"]))
                       for p in places.values()]  # fmt: skip
            expected.setdefault(int(key), {})[side] = sorted(lengths)
    run = imported(name)
    host = run.sql("""
        SELECT a.call, e.dur_ns, coalesce(w.dur_ns, 0) FROM events e
        JOIN op_args a ON a.event_id = e.id
        LEFT JOIN events w ON w.parent_id = e.id AND w.kind = 'sync'
        ORDER BY ALL
    """).fetchall()
    device = run.sql("""
        SELECT a.call, sum(e.dur_ns), sum(e.dur_ns) FILTER (e.kind = 'sync') FROM events e
        JOIN op_args a ON a.event_id = e.launcher_id GROUP BY a.call, e.track_id ORDER BY ALL
    """).fetchall()
    found = {}
    for side, rows in (("host", host), ("device", device)):
        for call, length, wait in rows:
            found.setdefault(call, {}).setdefault(side, []).append((length, wait or 0))
    for sides in found.values():
        for lengths in sides.values():
            lengths.sort()
    assert found == expected


def test_what_the_footprint_says_of_an_operator(imported):
    found = (
        imported("hand.json")
        .sql("""
        SELECT a.call, e.name, a.node, e.scope, a.input_shapes, a.output_shapes, a.input_dtypes,
               a.flops, a.bytes, a.concrete_inputs
        FROM events e JOIN op_args a ON a.event_id = e.id WHERE a.call IN (2, 6, 8, 12) ORDER BY 1
    """)
        .fetchall()
    )
    assert found == [
        (2, "ConvolutionForward", "model.backbone.conv1.Convolution(data[1],const{64,3,7,7}[3])",
         "model.backbone.conv1", "[[32,3,224,224],[64,3,7,7]]", "[[32,64,112,112]]",
         '["Float32","Float32"]', 7552892928, 122065664, '{"format":"NCHW","stride_h":2}'),
        (6, "Elemwise", "relu", None, "[[32,64,112,112]]", "[[32,64,112,112]]", '["Float32"]',
         25690112, 205520896, '{"mode":"RELU","in_layouts":[[0,12544,112,1]]}'),
        (8, "MatrixMul", "fc", None, "[[32,2048],[2048,1000]]", "[[32,1000]]",
         '["Float16","Float32"]', 131072000, 8451072, None),
        (12, "IndexingOneHot", "loss", None, None, None, '["Float32","Int32"]', None, None, None),
    ]  # fmt: skip


def test_no_kernel_starts_before_its_operator(imported):
    ((early, kernels),) = (
        imported("real/get_profile.train.json")
        .sql("""
        SELECT count(*) FILTER (k.ts_ns < o.ts_ns), count(*) FROM events k
        JOIN events o ON o.id = k.launcher_id WHERE k.kind = 'kernel'
    """)
        .fetchall()
    )
    assert early == 0 and kernels > 100


def test_copies_and_backward_operators_are_known_as_such(imported):
    copies = imported("hand.json").sql("""
        SELECT e.name, a.direction, a.bytes, t.device FROM events e
        JOIN kernel_args a ON a.event_id = e.id JOIN tracks t ON t.id = e.track_id
        WHERE e.kind = 'memcpy' ORDER BY ALL
    """)
    assert copies.fetchall() == [
        ("Copy", "device to device", 128000, "cuda:0"),
        ("Copy", "device to device", 128000, "cuda:1"),
        ("Host2DeviceCopy", "host to device", 19267584, "cuda:0"),
    ]
    ((backward, other),) = (
        imported("real/get_profile.train.json")
        .sql("""
        SELECT count(*) FILTER (starts_with(node, 'backward.') AND NOT is_backward),
               count(*) FILTER (starts_with(node, 'bn1.') AND e.scope <> 'bn1')
        FROM op_args a JOIN events e ON e.id = a.event_id
    """)
        .fetchall()
    )
    assert (backward, other) == (0, 0)
