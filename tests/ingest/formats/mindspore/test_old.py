"""The folder that MindInsight read: its arithmetic of steps, and the numbers of its own pages."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.mindspore import reader as mindspore
from strobe.ingest.importing.importer import import_traces
from strobe.store.run import Run

DATA = Path(__file__).parents[5] / "shared" / "data" / "ascend" / "mindinsight"
RUN_1 = DATA / "run_1" / "profiler"
TICK_NS = 10


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Run]:
    if not DATA.exists():
        pytest.skip("MindInsight's folders: shared data absent")
    home = tmp_path_factory.mktemp("runs")
    found = {}
    for name in ("run_1", "cluster_propose"):
        import_traces([DATA / name], home / name)
        found[name] = open_run_dir(home / name)
    return found


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def steps_of(run: Run, rank: int) -> list[tuple]:
    return run.sql(
        "SELECT p.step, sum(p.dur_ns) FILTER (p.name = 'gap'),"
        " sum(p.dur_ns) FILTER (p.name IN ('forward', 'backward', 'rest')),"
        " sum(p.dur_ns) FILTER (p.name IN ('all_reduce', 'update')), sum(p.dur_ns)"
        " FROM events p JOIN tracks t ON t.id = p.track_id WHERE p.kind = 'phase' AND rank = $1"
        " GROUP BY 1 ORDER BY 1", [rank],
    ).fetchall()  # fmt: skip


STEP_TRACES = [("run_1", 1, RUN_1)] + [
    ("cluster_propose", rank, DATA / "cluster_propose") for rank in range(4)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rank", "folder"), STEP_TRACES)
def test_gap_passes_and_tail_are_those_of_the_step_trace(runs, name, rank, folder):
    """interval = fp start - last end; fp_and_bp = bp end - fp start; tail = end - bp end."""
    *rows, average = table(folder / f"step_trace_raw_{rank}_detail_time.csv")
    found = steps_of(runs[name], rank)
    assert len(found) == len(rows)
    for (_, gap, passes, tail, whole), row in zip(found, rows, strict=True):
        ticks = {key: int(value) for key, value in row.items() if value}
        start, end, first, last = (
            ticks[f"{point}_point"] for point in ("start", "end", "fp", "bp")
        )
        assert (gap or 0) == (first - start) * TICK_NS == ticks["iteration_interval"] * TICK_NS
        assert passes == (last - first) * TICK_NS == ticks["fp_and_bp"] * TICK_NS
        assert (tail or 0) == (end - last) * TICK_NS == ticks["tail"] * TICK_NS
        assert whole == ticks["total"] * TICK_NS
    assert average["step_num"] == "-"
    if len(rows) != 322:
        return  # an excerpt: the average is over more steps than are in it
    later = found[1:]  # MindInsight's averages leave out the first step
    for place, column in ((1, "iteration_interval"), (2, "fp_and_bp"), (3, "tail"), (4, "total")):
        mean = sum(row[place] or 0 for row in later) / len(later)
        assert mean == pytest.approx(float(average[column]) * TICK_NS, rel=1e-4), column


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rank", "folder"), STEP_TRACES)
def test_collectives_are_the_reduce_lanes_of_the_step_trace(runs, name, rank, folder):
    rows = table(folder / f"step_trace_raw_{rank}_detail_time.csv")[:-1]
    expected: Counter[tuple[str, int]] = Counter()
    for row in rows:
        for column, value in row.items():
            lane = re.fullmatch(r"stream_(\d+)_(?:\d+_)?([A-Za-z]+)(?:-op\d+|_\d+)", column)
            if lane and value:
                kind = "AllReduce" if lane.group(2) == "parallel" else lane.group(2)
                expected[kind, int(lane.group(1))] += int(value) * TICK_NS
    found = runs[name].sql(
        "SELECT e.name, t.thread, sum(dur_ns) FROM events e JOIN tracks t ON t.id = e.track_id"
        " WHERE kind = 'collective' AND rank = $1 GROUP BY ALL", [rank],
    ).fetchall()  # fmt: skip
    assert {(kind, stream): length for kind, stream, length in found} == dict(expected)


@pytest.mark.slow
def test_all_reduce_is_what_lies_behind_backward(runs):
    """By hand, step 2: only the lane of stream 540 is behind bp_point."""
    row = table(RUN_1 / "step_trace_raw_1_detail_time.csv")[1]
    lanes = [
        key.removesuffix("_start_point") for key in row if key.endswith("parallel_0_start_point")
    ]
    behind = [lane for lane in lanes if int(row[f"{lane}_end_point"]) > int(row["bp_point"])]
    assert behind == ["stream_540_parallel_0"]
    [(found,)] = runs["run_1"].sql(
        "SELECT sum(dur_ns) FROM events WHERE kind = 'phase' AND name = 'all_reduce' AND step = 2"
    ).fetchall()  # fmt: skip
    assert found == int(row["stream_540_parallel_0"]) * TICK_NS


@pytest.mark.slow
def test_the_timeline_has_what_its_summary_counts(runs):
    summary = json.loads((RUN_1 / "timeline_summary_1.json").read_text())
    [(count, streams, length)] = runs["run_1"].sql(
        "SELECT count(*), count(DISTINCT track_id), sum(dur_ns) FROM events WHERE kind = 'kernel'"
    ).fetchall()  # fmt: skip
    assert (count, streams) == (summary["op_exe_times"], summary["num_of_streams"])
    assert length == pytest.approx(summary["total_time"] * 1000, rel=1e-9)
    lines = (RUN_1 / "output_timeline_data_1.txt").read_text().splitlines()[1:]
    assert length == sum(round(float(line.split(",")[3]) * 1e6) for line in lines)
    assert summary["num_of_ops"] == len({line.split(",")[0] for line in lines})


@pytest.mark.slow
def test_kernels_and_steps_are_on_one_clock(runs):
    """The first kernels run in the first step; their clock is that of the step trace."""
    first = float((RUN_1 / "output_timeline_data_1.txt").read_text().splitlines()[1].split(",")[2])
    start = int(table(RUN_1 / "step_trace_raw_1_detail_time.csv")[0]["start_point"])
    [(found,)] = runs["run_1"].sql(
        "SELECT min(ts_ns) FILTER (kind = 'step') - min(ts_ns) FILTER (kind = 'kernel') FROM events"
    ).fetchall()  # fmt: skip
    assert found == start * TICK_NS - round(first * 1e6)


@pytest.mark.slow
def test_communication_costs_are_those_of_hccl_raw(runs):
    for rank in range(4):
        rows = [
            r
            for r in table(DATA / "cluster_propose" / f"hccl_raw_{rank}.csv")
            if r["step_num"] != "-"
        ]
        with_steps = (
            len(table(DATA / "cluster_propose" / f"step_trace_raw_{rank}_detail_time.csv")) - 1
        )
        rows = [row for row in rows if int(row["step_num"]) <= with_steps]
        found = dict(
            runs["cluster_propose"].sql("SELECT name, sum(value) FROM counters WHERE rank = $1"
                                        " GROUP BY 1", [rank]).fetchall()
        )  # fmt: skip
        for name in ("communication", "wait"):
            expected = sum(float(row[f"{name}_cost"]) for row in rows)
            assert found[f"{name} cost (ms)"] == pytest.approx(expected)
        carried: Counter[str] = Counter()
        for row in rows:
            for pair, kinds in json.loads(row["link_info"]).items():
                for kind, (_, kilobytes, *_) in kinds.items():
                    carried[f"link {pair} {kind} (bytes)"] += kilobytes * 1000
        links = {name: value for name, value in found.items() if name.startswith("link ")}
        assert links == pytest.approx(dict(carried))


def test_forward_and_backward_are_told_apart_where_every_step_was_recorded(tmp_path):
    """The first 14 steps have their kernels: with these alone, Gradients/… begins backward."""
    if not DATA.exists():
        pytest.skip("MindInsight's folders: shared data absent")
    folder = tmp_path / "profiler"
    folder.mkdir()
    name = "step_trace_raw_1_detail_time.csv"
    lines = (RUN_1 / name).read_text().splitlines()
    (folder / name).write_text("\n".join(lines[:15]) + "\n")
    timeline = (RUN_1 / "output_timeline_data_1.txt").read_text()
    (folder / "output_timeline_data_1.txt").write_text(timeline)
    import_traces([folder], tmp_path / "run")
    found = open_run_dir(tmp_path / "run").sql(
        "SELECT step, sum(dur_ns) FILTER (name = 'forward'), sum(dur_ns) FILTER (name = 'backward')"
        " FROM events WHERE kind = 'phase' GROUP BY 1 ORDER BY 1"
    ).fetchall()  # fmt: skip
    rows = table(RUN_1 / name)[:14]
    gradients = sorted(
        round(float(line.split(",")[2]) * 1e6)
        for line in timeline.splitlines() if line.startswith("Gradients/")
    )  # fmt: skip
    assert len(found) == 14
    for (_, forward, backward), row in zip(found, rows, strict=True):
        first, last = int(row["fp_point"]) * TICK_NS, int(row["bp_point"]) * TICK_NS
        split = next(when for when in gradients if when >= first)
        assert (forward, backward) == (split - first, last - split)


def test_ranks_are_the_numbers_in_the_names():
    if not DATA.exists():
        pytest.skip("MindInsight's folders: shared data absent")
    assert [found.rank for found in mindspore.claim(DATA / "cluster_propose")] == [0, 1, 2, 3]
    [found] = mindspore.claim(DATA / "run_1")
    assert found.rank == 1 and len(found.paths) == 3


GPU = {
    "activity_execute_timestamp_0.txt":
        "volta_sgemm_128x64_nn;7;2000000000;150.5\n"
        "[CUDA memcpy HtoD];7;1990000000;3\nncclKernel;x;y;z\n",
    "gpu_op_execute_timestamp_0.txt":
        "Default/network-Net/fc-Dense/MatMul-op1;GpuOps;1999000000,160.25 2100000000,150 \n",
    "step_trace_profiling_0.txt":
        "GetNext-op1,1900000000 MatMul-op1,1990000000 ReluGrad-op1,2050000000 Assign-op1,2090000000"
        " AllReduce-op1,2040000000,2070000000\n"
        "GetNext-op1,2090000000 MatMul-op1,2099000000 ReluGrad-op1,2150000000"
        " Assign-op1,2200000000\n"
        "cut,2200000000 MatM\n",
}  # fmt: skip


def test_the_folder_of_a_gpu(tmp_path):
    """Drawn by hand: no recording of a GPU was at hand."""
    folder = tmp_path / "profiler"
    folder.mkdir()
    for name, text in GPU.items():
        (folder / name).write_text(text)
    import_traces([folder], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    first = 1_900_000_000
    assert run.sql(
        "SELECT e.name, kind, device, ts_ns, dur_ns FROM events e JOIN tracks t"
        " ON t.id = e.track_id WHERE kind IN ('kernel', 'memcpy', 'op', 'collective')"
        " ORDER BY ts_ns"
    ).fetchall() == [
        ("[CUDA memcpy HtoD]", "memcpy", "cuda:0", 1_990_000_000 - first, 3000),
        ("MatMul", "op", "cpu", 1_999_000_000 - first, 160_250),
        ("volta_sgemm_128x64_nn", "kernel", "cuda:0", 2_000_000_000 - first, 150_500),
        ("AllReduce", "collective", "cuda:0", 2_040_000_000 - first, 30_000_000),
        ("MatMul", "op", "cpu", 2_100_000_000 - first, 150_000),
    ]  # fmt: skip
    phases = run.sql(
        "SELECT step, name, dur_ns // 1000000 FROM events WHERE kind = 'phase' ORDER BY ts_ns"
    ).fetchall()  # fmt: skip
    assert phases == [
        (1, "gap", 90), (1, "rest", 60), (1, "all_reduce", 20), (1, "update", 20),
        (2, "gap", 9), (2, "rest", 51), (2, "update", 50),
    ]  # fmt: skip
    said = {what for (what,) in run.sql("SELECT what FROM problems").fetchall()}
    assert {"a line does not tell of a kernel and was left out",
            "a line does not tell of a step and was left out"} <= said  # fmt: skip
