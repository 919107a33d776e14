"""MindData's queues and waits against its own analysis; the runtime profiler and its summary."""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from strobe.analyse.tables.data import data_pipeline
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.ascend import reader as ascend
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import reader as mindspore
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

DATA = Path(__file__).parents[5] / "shared" / "data" / "mindspore"
MINDDATA, RUNTIME = DATA / "minddata_2.10", DATA / "runtime_profiler_2.10"


def read(folder: Path) -> Trace:
    if not DATA.exists():
        pytest.skip("MindData's files: shared data absent")
    [found] = mindspore.claim(folder)
    return mindspore.read(Source(mindspore.NAME, [str(p) for p in found.paths]), Vocabulary())


def by_name(trace: Trace, samples) -> dict[str, list[tuple[int, float, int]]]:
    names = list(trace.words.names)
    found = defaultdict(list)
    for part in samples:
        capacity = [-1] * len(part.ts_ns) if part.capacity is None else part.capacity.tolist()
        rows = zip(
            part.name.tolist(), part.ts_ns.tolist(), part.value.tolist(), capacity, strict=True
        )
        for name, *row in rows:
            found[names[name]].append(tuple(row))
    return found


@pytest.mark.parametrize("name", ["md_fast", "md_slow"])
def test_queues_are_those_of_mindspores_own_summary(name):
    trace = read(MINDDATA / name)
    queues = by_name(trace, trace.queues)
    summary = json.loads((MINDDATA / name / "out" / "minddata_pipeline_summary_0.json").read_text())
    names, parents = summary["op_names"], summary["parent_id"]
    for number, kind in enumerate(names):
        if summary["queue_average_size"][number] < 0:
            continue
        below = parents[number]
        rows = queues[f"{kind}Op_{number} to {names[below]}Op_{below}"]
        sizes = [size for _, size, _ in rows]
        mean = sum(sizes) / len(sizes)
        assert mean == pytest.approx(summary["queue_average_size"][number], abs=0.006)
        assert {capacity for *_, capacity in rows} == {16}
        used = 100 * mean / 16
        assert used == pytest.approx(summary["queue_utilization_pct"][number], abs=0.04)
        empty = 100 * sizes.count(0) / len(sizes)
        assert empty == pytest.approx(summary["queue_empty_freq_pct"][number], abs=0.006)


@pytest.mark.parametrize("name", ["md_fast", "md_slow", "md_sink"])
def test_waits_and_the_queue_of_batches_are_those_of_the_file(name):
    trace = read(MINDDATA / name)
    lines = (MINDDATA / name / "dataset_iterator_profiling_0.txt").read_text().splitlines()
    rows = [tuple(map(int, line.split())) for line in lines]
    counters, queues = by_name(trace, trace.counters), by_name(trace, trace.queues)
    for code, what in enumerate(("pipeline", "push", "batch")):
        expected = [(when * 10**6, value) for a, b, _, value, when in rows if (a, b) == (0, code)]
        found = [(when, value) for when, value, _ in counters[f"data iterator {what} (ms)"]]
        assert found == expected
    assert [row[1:] for row in queues["data iterator"]] == [
        (v, c) for a, c, _, v, _ in rows if a == 1
    ]
    summary = MINDDATA / name / "out" / "minddata_pipeline_summary_0.json"
    if summary.exists():  # it leaves out the first
        values = [value for _, value, _ in counters["data iterator pipeline (ms)"]][1:]
        told = json.loads(summary.read_text())["per_pipeline_time"]
        assert sum(values) / len(values) == pytest.approx(told[0], abs=0.0006)
    waits = [span for part in trace.spans for span in zip(part.ts_ns, part.dur_ns, strict=True)]
    assert [int(length) for _, length in waits] == [
        v * 10**6 for a, b, _, v, _ in rows if (a, b) == (0, 2)
    ]
    ends = [int(begin + length) for begin, length in waits]
    assert ends == [when * 10**6 for a, b, _, _, when in rows if (a, b) == (0, 2)]


def test_a_slow_map_shows_in_its_queue(tmp_path):
    """md_slow sleeps in its map: what it fills is empty, what it empties is full."""
    if not DATA.exists():
        pytest.skip("MindData's files: shared data absent")
    import_traces([MINDDATA / "md_slow"], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    found = dict(run.sql("SELECT name, avg(length / capacity) FROM queues GROUP BY 1").fetchall())
    assert found["GeneratorOp_4 to MapOp_3"] > 0.8 > 0.01 > found["MapOp_3 to ShuffleOp_2"]
    assert run.sql("SELECT count(*) FROM events WHERE kind = 'data'").fetchall() == [(60,)]
    stages = data_pipeline.run(run).project("stage, workers, is_at_fault").fetchall()
    assert stages == [
        ("GeneratorOp_4", 1, False), ("MapOp_3", 1, True), ("ShuffleOp_2", 1, False),
        ("BatchOp_1", 2, False), ("EpochCtrlOp_0", 1, False), ("training", None, False),
    ]  # fmt: skip
    problems = run.sql("SELECT source FROM problems").fetchall()
    assert not [source for (source,) in problems if source.startswith("minddata_pipeline")]


def test_queues_of_the_analysed_file_are_the_same(tmp_path):
    """minddata_pipeline_raw_0.csv alone, as an Ascend leaves it."""
    if not DATA.exists():
        pytest.skip("MindData's files: shared data absent")
    raw, whole = read(MINDDATA / "md_fast" / "out"), read(MINDDATA / "md_fast")
    mine, theirs = by_name(raw, raw.queues), by_name(whole, whole.queues)
    assert mine and all(
        [row[1:] for row in rows] == [row[1:] for row in theirs[name]]
        for name, rows in mine.items()
    )


def test_minddata_beside_a_device_is_put_on_its_clock(tmp_path):
    """profiler_info says when the machine's clock stood where, in the device's time."""
    root = tmp_path / "host_7_20260101000000000_ascend_ms"
    output, framework = root / "ASCEND_PROFILER_OUTPUT", root / "FRAMEWORK"
    output.mkdir(parents=True)
    framework.mkdir()
    (output / "kernel_details.csv").write_text(
        "Step ID,Device ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
        "1,3,Default/net-Net/fc-Dense/MatMul-op1,MatMul,AI_CORE,1700000000000100.500\t,20.25\n"
    )
    (framework / "dataset_iterator_profiling_2.txt").write_text("0 2 1 30 5000\n1 16 1 4 5000\n")
    info = {
        "start_info": {"start_monotonic": 4_000_000_000},
        "end_info": {
            "collectionTimeEnd": 1_700_000_006_000_000_000,
            "MonotonicTimeEnd": 10_000_000_000,
        },
        "rank_id": 2,
    }
    (root / "profiler_info_2.json").write_text(json.dumps(info))
    import_traces([tmp_path], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    began = 1_700_000_000_000_000_000  # 6 s before the end
    [(name, kind, scope, ts, length)] = run.sql(
        "SELECT name, kind, scope, ts_ns, dur_ns FROM events WHERE kind IN ('kernel', 'data')"
        " ORDER BY ts_ns LIMIT 1"
    ).fetchall()  # fmt: skip
    assert (name, kind, scope, length) == ("MatMul", "kernel", "net.fc", 20_250)
    queue = run.sql("SELECT rank, ts_ns, length, capacity FROM queues").fetchall()
    assert queue == [(2, ts + 1_000_000_000 - 100_500, 4, 16)]
    assert run.manifest.started_unix_ns <= began + 100_500
    assert [found.rank for found in ascend.claim(tmp_path)] == [2]


@pytest.mark.parametrize("name", ["graph", "pynative"])
def test_the_runtime_profiler_against_its_summary(name):
    trace = read(RUNTIME / name)
    [summary] = (RUNTIME / name / "rank_0").glob("RuntimeProfilerSummary*.csv")
    text = summary.read_text()
    told = [int(length) for length in re.findall(r"\[Step:\d+, step_time:(\d+)ns", text)]
    assert trace.steps is not None
    assert len(trace.steps.step_dur_ns) == len(told)
    # A step that begins before the one before it has ended is cut there, by less than this.
    assert trace.steps.step_dur_ns.tolist() == pytest.approx(told, abs=300_000)
    [spans] = trace.spans
    names = list(trace.words.names)
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    ops = spans.kind == KIND["op"]
    for code, length in zip(spans.name[ops].tolist(), spans.dur_ns[ops].tolist(), strict=True):
        found[names[code]][0] += 1
        found[names[code]][1] += length
    launches = r"Event:KernelLaunch, total_time:(\d+)ns, average_time:[\d.]+ns, total_count:(\d+)"
    expected = [(int(total), int(count)) for total, count in re.findall(launches, text)]
    assert sum(count for count, _ in found.values()) == sum(count for _, count in expected)
    assert sum(total for _, total in found.values()) == sum(total for total, _ in expected)


def test_the_runtime_profiler_is_known_by_content(tmp_path):
    if not DATA.exists():
        pytest.skip("MindSpore's runtime profiler: shared data absent")
    [detail] = (RUNTIME / "graph" / "rank_0").glob("RuntimeProfilerDetail*.csv")
    found = mindspore.recognise(peek(detail))
    assert found is not None and found.first_unix_ns is not None
