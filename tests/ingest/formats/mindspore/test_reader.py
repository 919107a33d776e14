"""MindSpore's host: operators, steps and memory against its own totals and arithmetic by hand."""

import csv
import json
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.mindspore import phases as mindspore_phases
from strobe.ingest.formats.mindspore import reader as mindspore
from strobe.ingest.formats.mindspore.names import Meaning, meaning
from strobe.ingest.formats.mindspore.phases import PARTS, Work
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace
from strobe.model.schema import PHASES
from strobe.store.run import Run

DATA = Path(__file__).parents[5] / "shared" / "data" / "mindspore"
PROFILES = (
    "uncond_dp.graph", "uncond_dp.pynative", "custom.graph", "custom.pynative", "cb_step.graph",
    "seed4_graph", "seed4_pynative", "profile_plain.pynative", "dyn_step", "env_rel", "dist/rank_1",
    "dist4_straggler/rank_2",
)  # fmt: skip


def profile(name: str) -> Path:
    if not DATA.exists():
        pytest.skip("MindSpore's profiles: shared data absent")
    [found] = (DATA / "profiler_2.10" / name).rglob("*_ascend_ms")
    return found


def one(folder: Path, pattern: str) -> Path:
    [found] = (folder / "FRAMEWORK").glob(pattern)
    return found


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def executed(path: Path) -> list[tuple[int, int, str]]:
    """(start, end, full name) of every run, in order."""
    found = []
    for line in path.read_text().splitlines():
        name, _, runs = line.split(";")
        for start, length, _ in (run.split(",") for run in runs.split()):
            found.append((int(start), int(start) + round(float(length) * 1e6), name))
    return sorted(found)


def trace_of(folder: Path) -> Trace:
    [found] = mindspore.claim(folder)
    source = Source(mindspore.NAME, [str(path) for path in found.paths])
    return mindspore.read(source, Vocabulary())


def phases(steps: Steps) -> list[dict[str, int]]:
    found = [Counter() for _ in steps.step_ts_ns]
    for step, name, length in zip(
        steps.phase_step, steps.phase_name, steps.phase_dur_ns, strict=True
    ):
        found[step - 1][PHASES[name]] += int(length)
    return [dict(parts) for parts in found]


def check_tiling(steps: Steps) -> None:
    ends = steps.phase_ts_ns + steps.phase_dur_ns
    assert (ends[:-1] <= steps.phase_ts_ns[1:]).all()
    for parts, length in zip(phases(steps), steps.step_dur_ns.tolist(), strict=True):
        assert sum(parts.values()) == length


def import_one(folder: Path, run: Path) -> Run:
    import_traces([folder], run)
    return open_run_dir(run)


@pytest.mark.parametrize("name", PROFILES)
def test_operator_times_are_those_of_op_type_info_and_op_detail_info(name):
    folder = profile(name)
    trace = trace_of(folder)
    [spans] = trace.spans
    names, nodes = list(trace.words.names), list(trace.words.texts)
    by_type: dict[str, list[float]] = defaultdict(list)
    by_node: dict[str, list[float]] = defaultdict(list)
    for code, node, length in zip(
        spans.name, spans.args["node"], spans.dur_ns.tolist(), strict=True
    ):
        by_type[names[code]].append(length / 1e6)
        by_node[nodes[node]].append(length / 1e6)
    types = table(one(folder, "cpu_op_type_info_*.csv"))
    assert {n: len(t) for n, t in by_type.items()} == {
        row["op_type"]: int(row["type_occurrences"]) for row in types
    }
    for row in types:  # six digits are told
        total = float(row["total_compute_time"])
        assert sum(by_type[row["op_type"]]) == pytest.approx(total, rel=2e-5), row
    details = table(one(folder, "cpu_op_detail_info_*.csv"))
    assert {n: len(t) for n, t in by_node.items()} == {
        row["full_op_name"]: int(row["op_occurrences"]) for row in details
    }
    for row in details:
        total = float(row["op_total_time(ms)"])
        assert sum(by_node[row["full_op_name"]]) == pytest.approx(total, rel=2e-5), row


def test_the_step_trace_of_a_graph_by_hand():
    """43 operators a step; names begin with Gradients in backward, optimizer-… updates."""
    folder = profile("uncond_dp.graph")
    steps = trace_of(folder).steps
    assert steps is not None and len(steps.step_ts_ns) == 20
    check_tiling(steps)
    runs = executed(one(folder, "cpu_op_execute_timestamp_*.txt"))
    for number, parts in enumerate(phases(steps)):
        mine = runs[number * 43 : (number + 1) * 43]
        assert len({name for *_, name in mine}) == 43
        begin, end = mine[0][0], max(end for _, end, _ in mine)
        backward = [(b, e) for b, e, name in mine if name.startswith("Gradients/")]
        first, last = min(b for b, _ in backward), max(e for _, e in backward)
        before = max((e for _, e, _ in runs[: number * 43]), default=begin)
        assert parts.get("gap", 0) == begin - before
        assert parts["forward"] == first - begin
        assert parts["backward"] == last - first
        assert parts.get("update", 0) == end - last
        assert parts.keys() <= {"gap", "forward", "backward", "update"}


@pytest.mark.parametrize(
    ("name", "count"),
    [("uncond.graph", 20), ("uncond.pynative", 20), ("cb_step.graph", 4), ("cb_step.pynative", 4),
     ("custom.graph", 5), ("custom.pynative", 5), ("dyn_cb", 2), ("dyn_step", 1),
     ("seed4_graph", 2), ("seed4_pynative", 2), ("dist/rank_0", 10)],
)  # fmt: skip
def test_steps_are_as_many_as_were_recorded(name, count):
    """custom.graph was begun in the middle of a step: its operators have run 5 or 6 times."""
    steps = trace_of(profile(name)).steps
    assert steps is not None and len(steps.step_ts_ns) == count
    check_tiling(steps)
    assert all({"forward", "backward", "update"} <= parts.keys() for parts in phases(steps))


def test_all_reduce_is_what_blocks_between_the_operators():
    """On a host nothing hides it: MindSpore's own totals for AllReduce are the phase."""
    for rank in range(4):
        folder = profile(f"dist4_straggler/rank_{rank}")
        trace = trace_of(folder)
        [row] = [
            r for r in table(one(folder, "cpu_op_type_info_*.csv")) if r["op_type"] == "AllReduce"
        ]
        total = sum(parts["all_reduce"] for parts in phases(trace.steps))
        assert total / 1e6 == pytest.approx(float(row["total_compute_time"]), rel=1e-5)


@pytest.mark.slow
def test_several_ranks_in_a_folder(tmp_path):
    if not DATA.exists():
        pytest.skip("MindSpore's profiles: shared data absent")
    run = import_one(DATA / "profiler_2.10" / "dist4_straggler", tmp_path / "run")
    found = run.sql(
        "SELECT t.rank, count(*), round(sum(dur_ns) / 1e6) FROM events e JOIN tracks t"
        " ON t.id = e.track_id JOIN collective_args a ON a.event_id = e.id"
        " WHERE operation = 'all_reduce' GROUP BY 1 ORDER BY 1"
    ).fetchall()  # fmt: skip
    assert found == [(0, 40, 2184), (1, 40, 1762), (2, 40, 1236), (3, 40, 288)]
    assert run.sql("SELECT count(*) FROM problems").fetchall() == [(0,)]
    begins = run.sql("SELECT min(ts_ns) FROM events").fetchall()
    assert begins == [(0,)]


def test_two_windows_of_one_rank_follow_one_another(tmp_path):
    if not DATA.exists():
        pytest.skip("MindSpore's profiles: shared data absent")
    run = import_one(DATA / "profiler_2.10" / "profile_sched.graph", tmp_path / "run")
    found = run.sql(
        "SELECT t.rank, e.step, count(*) FILTER (kind = 'op') FROM events e"
        " JOIN tracks t ON t.id = e.track_id WHERE e.step IS NOT NULL GROUP BY ALL ORDER BY 2"
    ).fetchall()  # fmt: skip
    assert found == [(0, 1, 43), (0, 2, 43), (0, 3, 43), (0, 4, 43)]


def test_shapes_scopes_and_directions(tmp_path):
    run = import_one(profile("uncond_dp.graph"), tmp_path / "run")
    found = run.sql(
        "SELECT name, is_backward, input_shapes, node FROM events e JOIN op_args a ON"
        " a.event_id = e.id WHERE step = 2 AND scope = 'network._backbone.conv2' ORDER BY ts_ns"
    ).fetchall()  # fmt: skip
    path = "Default/network-WithLossCell/_backbone-LeNet5/conv2-Conv2d"
    assert found[0] == (
        "Conv2D", False, "[[32, 6, 14, 14], [16, 6, 5, 5]]", f"{path}/Conv2D-op0",
    )  # fmt: skip
    back = f"Gradients/{path}/Grad_Conv2D"
    assert [(name, direction, node) for name, direction, _, node in found[1:]] == [
        ("Conv2DBackpropInput", True, f"{back}/Conv2DBackpropInput-op0"),
        ("Conv2DBackpropFilter", True, f"{back}/Conv2DBackpropFilter-op0"),
    ]


def test_memory_peaks_are_those_of_the_record(tmp_path):
    folder = profile("uncond_dp.graph")
    run = import_one(folder, tmp_path / "run")
    rows = table(one(folder, "cpu_ms_memory_record_0.txt"))
    for amount in ("Allocated", "Reserved", "Active"):
        name = f"memory pool {amount.lower()} (bytes)"
        found = run.sql("SELECT max(value), count(*) FROM counters WHERE name = $1", [name])
        peak = max(int(row[f"Total {amount}(Byte)"]) for row in rows)
        assert found.fetchall() == [(peak, len(rows))]


def test_the_folder_of_mindspore_2_0_counts_from_the_start_of_the_machine(tmp_path):
    if not DATA.exists():
        pytest.skip("MindSpore's profiles: shared data absent")
    run = import_one(DATA / "profiler_2.0" / "profiler", tmp_path / "run")
    types = table(DATA / "profiler_2.0" / "profiler" / "cpu_op_type_info_0.csv")
    found = run.sql("SELECT name, count(*) FROM events WHERE kind = 'op' GROUP BY 1").fetchall()
    assert dict(found) == {row["op_type"]: int(row["type_occurrences"]) for row in types}
    assert run.sql("SELECT count(*), min(ts_ns) FROM events WHERE kind = 'step'").fetchall() == [
        (40, 0)
    ]
    about = trace_of(DATA / "profiler_2.0" / "profiler").about
    assert about.frameworks == {"mindspore": "2.0.0"} and about.world_size == 1


def test_a_file_alone_is_known_by_its_content(tmp_path):
    name = one(profile("dist/rank_1"), "cpu_op_execute_timestamp_*.txt")
    alone = tmp_path / "renamed"
    shutil.copy(name, alone)
    assert mindspore.recognise(peek(alone)) is not None
    run = import_one(alone, tmp_path / "run")
    assert run.sql("SELECT count(*) FROM events WHERE kind IN ('op', 'collective')").fetchall() == [
        (270,)
    ]


NAMES = {
    "Default/network-WithLossCell/_backbone-LeNet5/fc3-Dense/MatMul-op0": Meaning(
        "MatMul", "network._backbone.fc3", "forward", False
    ),
    "Gradients/Default/network-Net/fc3-Dense/Grad_MatMul/MatMul-op1": Meaning(
        "MatMul", "network.fc3", "backward", False
    ),
    "Gradients/Default/network-Net/fc3-Dense/gradBiasAdd-meta/BiasAddGrad-op102": Meaning(
        "BiasAddGrad", "network.fc3", "backward", False
    ),
    "Default/optimizer-Momentum/ApplyMomentum-op7": Meaning(
        "ApplyMomentum", "optimizer", "update", False
    ),
    "Default/optimizer-Momentum/AssignAdd-op0": Meaning("AssignAdd", "optimizer", "", False),
    "Default/grad_reducer-DistributedGradReducer/AllReduce-op2": Meaning(
        "AllReduce", "grad_reducer", "", True
    ),
    "Default/ApplyMomentum-op6": Meaning("ApplyMomentum", "", "update", False),
    "Default/Conv2DBackpropFilter-op0": Meaning("Conv2DBackpropFilter", "", "backward", False),
    "Default/Conv2D-op0": Meaning("Conv2D", "", "", False),
    "MatMul": Meaning("MatMul", "", "", False),
    "ReduceSum": Meaning("ReduceSum", "", "", False),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_operators(name):
    assert meaning(name) == NAMES[name]


def drawn(*lines: str) -> Work:
    """`part begin..end` of each piece of work; part c is a collective."""
    rows = []
    for line in lines:
        part, span = line.split()
        begin, end = map(int, span.split(".."))
        rows.append((begin, end, PARTS.index(part) if part in PARTS else 0, part == "c"))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Work(*columns)


PHASES_BY_HAND = [
    (("forward 10..20", "backward 25..40", "update 45..50"),
     "gap 10 forward 15 backward 15 update 10 rest 10"),
    (("forward 10..20", "backward 20..30", "c 25..40", "update 40..50"),
     "gap 10 forward 10 backward 10 all_reduce 10 update 10 rest 10"),
    (("forward 10..20", "c 20..30", "backward 30..40"),
     "gap 10 forward 10 all_reduce 10 backward 10 rest 20"),
    (("forward 0..10", "backward 10..20", "update 20..30", "c 30..40"),
     "forward 10 backward 10 update 10 all_reduce 10 rest 20"),
    (("c 10..20", "c 15..30"), "gap 10 all_reduce 20 rest 30"),
    (("other 10..60",), "gap 10 rest 50"),
    (("backward 0..5", "forward 5..20", "backward 20..30", "forward 30..40", "backward 40..50",
      "forward 50..55", "update 55..60"),
     "backward 5 forward 15 backward 10 forward 10 backward 10 update 10"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), PHASES_BY_HAND)
def test_phases_of_one_step_by_hand(lines, expected):
    steps = mindspore_phases.steps([(0, 60)], drawn(*lines))
    check_tiling(steps)
    found = [f"{PHASES[name]} {length}" for name, length in
             zip(steps.phase_name, steps.phase_dur_ns, strict=True)]  # fmt: skip
    assert " ".join(found) == expected


def write_operators(folder: Path, runs: dict[str, list[tuple[int, int]]]) -> Path:
    folder.mkdir(parents=True)
    path = folder / "cpu_op_execute_timestamp_0.txt"
    lines = [
        f"{name};HostCpuOps;" + " ".join(f"{at * 10**6},{length},0" for at, length in of)
        for name, of in runs.items()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_operators_that_do_not_fall_into_steps_give_none(tmp_path):
    runs = {f"Default/net-N/a-A/Op-op{n}": [(10, 5), (12 + n, 90), (50, 1)] for n in range(5)}
    write_operators(tmp_path / "data", runs)
    trace = trace_of(tmp_path / "data")
    assert trace.steps is None
    [((_, what), _)] = trace.said.counts.items()
    assert what == "its operators do not tell where steps begin: there are none"


def test_shapes_that_are_of_other_runs_are_not_taken(tmp_path):
    write_operators(
        tmp_path / "data", {"Default/net-N/A-op0": [(1, 1)], "Default/net-N/B-op0": [(3, 1)]}
    )
    wrong = "B;B-op0;1;input_1:[1];\nA;A-op0;1;input_1:[2];\n"
    (tmp_path / "data" / "cpu_framework_0.txt").write_text(wrong)
    trace = trace_of(tmp_path / "data")
    [spans] = trace.spans
    assert set(spans.args["dims"]) == {-1}
    assert any("shapes of their inputs are unknown" in what for _, what in trace.said.counts)


def test_json_of_shapes_is_json():
    trace = trace_of(profile("dist/rank_0"))
    [spans] = trace.spans
    texts = list(trace.words.texts)
    assert all(
        isinstance(json.loads(texts[code]), list) for code in set(spans.args["dims"].tolist())
    )


@pytest.mark.parametrize(
    "beside", ["PROF_1_2_3/host/data/x.slice_0", "rank-0_2_ascend_ms/PROF_1/x"]
)
def test_a_raw_recording_beside_the_files_of_mindinsight_is_no_matter(tmp_path, beside):
    raw = tmp_path / "data" / "profiler" / beside
    raw.parent.mkdir(parents=True)
    raw.write_bytes(b"\0\1\2")
    old = DATA.parent / "ascend" / "mindinsight" / "cluster_propose"
    if not old.exists():
        pytest.skip("MindInsight's folders: shared data absent")
    shutil.copy(old / "step_trace_raw_0_detail_time.csv", tmp_path / "data" / "profiler")
    run = import_one(tmp_path / "data", tmp_path / "run")
    assert run.sql("SELECT count(*) FROM events WHERE kind = 'step'").fetchall() == [(5,)]


def test_kernels_that_a_profile_has_are_not_read_again_from_beside_it(tmp_path):
    """MindSpore 2.3 and 2.4 write both; MindData is only in the older."""
    place = tmp_path / "profiler"
    output = place / "rank-0_2026_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    header = "Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
    (output / "kernel_details.csv").write_text(header + "a,A,AI_CORE,1700000000000000.5,7\n")
    timeline = (
        "kernel_name, stream_id, start_time(us), duration(ms)\na,1,1700000000000000.5,0.007\n"
    )
    (place / "output_timeline_data_0.txt").write_text(timeline)
    (place / "dataset_iterator_profiling_0.txt").write_text("1 16 1 4 5000\n")
    run = import_one(place, tmp_path / "run")
    assert run.sql("SELECT name, dur_ns FROM events WHERE kind = 'kernel'").fetchall() == [
        ("A", 7000)
    ]
    assert run.sql("SELECT rank, length FROM queues").fetchall() == [(0, 4)]


def test_the_timeline_of_a_host_alone_tells_the_same_steps(tmp_path):
    """Its times are rounded, and 37 ns late; its operators and steps are the same."""
    folder = profile("dist/rank_0")
    run = import_one(folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", tmp_path / "alone")
    whole = import_one(folder, tmp_path / "whole")
    query = (
        "SELECT kind, name, count(*), sum(dur_ns) FROM events"
        " WHERE kind IN ('op', 'collective', 'phase') GROUP BY ALL ORDER BY ALL"
    )
    found, expected = run.sql(query).fetchall(), whole.sql(query).fetchall()
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert row[3] == pytest.approx(other[3], abs=1000 * row[2])
