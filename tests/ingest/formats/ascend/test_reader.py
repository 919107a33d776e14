"""Recordings of an Ascend NPU: the numbers of the run against those of Ascend's own tools."""

import csv
import json
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from strobe.cli import main
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.ascend import reader as ascend
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.trace.spans import Vocabulary
from strobe.store.run import Run

DATA = Path(__file__).parents[5] / "shared" / "data" / "ascend"
TWO_RANKS = {rank: f"torch_npu_2ranks/level1/rank{rank}_ascend_pt" for rank in (0, 1)}
FOUR_RANKS = {rank: f"torch_npu_4ranks_pp2_dp2/rank_{rank}_ascend_pt" for rank in range(4)}
# The ranks whose kernels are there, with the run they are in.
WITH_KERNELS = [("two", TWO_RANKS[0], 0), ("two", TWO_RANKS[1], 1), ("four", FOUR_RANKS[0], 0),
                ("four", FOUR_RANKS[2], 2)]  # fmt: skip
ALL_RANKS = [*WITH_KERNELS, ("four", FOUR_RANKS[1], 1), ("four", FOUR_RANKS[3], 3)]
MB = 1 << 20


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Run]:
    if not DATA.exists():
        pytest.skip("recordings of an NPU: shared data absent")
    home = tmp_path_factory.mktemp("runs")
    import_traces([DATA / "torch_npu_2ranks"], home / "two")
    import_traces([DATA / "torch_npu_4ranks_pp2_dp2"], home / "four")
    return {name: open_run_dir(home / name) for name in ("two", "four")}


def told(folder: str, name: str) -> list[dict[str, str]]:
    path = DATA / folder / "ASCEND_PROFILER_OUTPUT" / name
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: v.strip() for k, v in row.items()} for row in csv.DictReader(file)]


def communication(folder: str) -> dict[str, dict]:
    """name@group -> what is told, over the steps."""
    path = DATA / folder / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    steps = json.loads(path.read_text())
    kinds = [kinds for step in steps.values() for kinds in step.values()]
    return {name: told for named in kinds for name, told in named.items() if "@" in name}


def rows(run: Run, query: str, rank: int) -> list[tuple]:
    """`e` are the events of a rank, `t` their tracks."""
    query = query.format(events="FROM events e JOIN tracks t ON t.id = e.track_id AND t.rank = $1")
    return run.sql(query, [rank]).fetchall()


def union_ns(stretches: list[tuple[int, int]]) -> int:
    total, last = 0, -(2**63)
    for begin, end in sorted(stretches):
        total += max(0, end - max(begin, last))
        last = max(last, end)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder", "rank"), WITH_KERNELS)
def test_kernel_times_are_those_of_op_statistic(runs, name, folder, rank):
    expected: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for row in told(folder, "op_statistic.csv"):
        shown = row["OP Type"] + (" (AI CPU)" if "AI_CPU" in row["Core Type"] else "")
        expected[shown][0] += int(row["Count"])
        expected[shown][1] += float(row["Total Time(us)"])
    found = rows(
        runs[name],
        "SELECT e.name, count(*), sum(dur_ns) {events} WHERE kind = 'kernel' GROUP BY ALL", rank,
    )  # fmt: skip
    assert {n: c for n, c, _ in found} == {n: count for n, (count, _) in expected.items()}
    for shown, count, lasted in found:  # it adds up more digits than kernel_details.csv has
        assert lasted == pytest.approx(expected[shown][1] * 1000, abs=count), shown


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder", "rank"), ALL_RANKS)
def test_step_times_are_those_of_step_trace_time(runs, name, folder, rank):
    [line] = told(folder, "step_trace_time.csv")
    us = {key: float(value) for key, value in line.items() if key not in ("Step", "Device_id")}
    run = runs[name]
    work = rows(run, "SELECT kind, ts_ns, ts_ns + dur_ns {events} WHERE kind IN"
                " ('kernel', 'collective') AND t.device <> 'cpu'", rank)  # fmt: skip
    kernels = [(begin, end) for kind, begin, end in work if kind == "kernel"]
    collectives = [(begin, end) for kind, begin, end in work if kind == "collective"]
    phases = Counter()
    for phase, length in rows(run, "SELECT e.name, dur_ns {events} WHERE kind = 'phase'", rank):
        phases[phase] += length
    [(step_ns,)] = rows(run, "SELECT dur_ns {events} WHERE kind = 'step'", rank)
    assert sum(phases.values()) == step_ns
    both = union_ns(collectives)
    assert both == pytest.approx(us["Communication"] * 1000, abs=100)
    assert phases["all_reduce"] == pytest.approx(
        us["Communication(Not Overlapped)"] * 1000, abs=100
    )
    # Preparing is a difference of doubles that hold a quarter of a microsecond.
    assert phases["gap"] == pytest.approx(us["Preparing"] * 1000, abs=500)
    if kernels:
        computing = union_ns(kernels)
        covered = union_ns(kernels + collectives)
        stage = max(e for _, _, e in work) - min(b for _, b, _ in work)
        assert computing == pytest.approx(us["Computing"] * 1000, abs=100)
        assert both + computing - covered == pytest.approx(us["Overlapped"] * 1000, abs=100)
        assert stage == pytest.approx(us["Stage"] * 1000, abs=500)
        assert stage - covered == pytest.approx(us["Free"] * 1000, abs=100)
    else:
        assert step_ns == pytest.approx((us["Stage"] + us["Preparing"]) * 1000, abs=500)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder", "rank"), ALL_RANKS)
def test_collectives_are_those_of_communication_json(runs, name, folder, rank):
    expected = communication(folder)
    times = [told["Communication Time Info"] for told in expected.values()]
    found = rows(
        runs[name],
        'SELECT e.ts_ns, dur_ns, e.name, a.operation, a."group" {events}'
        " JOIN collective_args a ON a.event_id = e.id WHERE t.device <> 'cpu' ORDER BY 1",
        rank,
    )
    assert len(found) == len(expected)
    lengths = sorted(length for _, length, *_ in found)
    assert lengths == pytest.approx(sorted(t["Elapse Time(ms)"] * 1e6 for t in times), abs=1)
    starts = [when - found[0][0] for when, *_ in found]
    first = min(t["Start Timestamp(us)"] for t in times)
    assert starts == pytest.approx(
        sorted((t["Start Timestamp(us)"] - first) * 1000 for t in times), abs=600
    )
    assert Counter(group for *_, group in found) == Counter(n.split("@")[1] for n in expected)
    assert Counter(n for _, _, n, *_ in found) == Counter(n.split("__")[0] for n in expected)
    assert {operation for *_, operation, _ in found} <= {
        "all_reduce", "all_gather", "reduce_scatter", "send_recv"
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder", "rank"), ALL_RANKS)
def test_links_carried_what_communication_json_tells(runs, name, folder, rank):
    expected: dict[str, float] = defaultdict(float)
    for of in communication(folder).values():
        for link, size in of["Communication Bandwidth Info"].items():
            expected[f"{link} transit (bytes)"] += size["Transit Size(MB)"] * 1e6
    found = runs[name].sql(
        "SELECT name, sum(value) FROM counters WHERE rank = $1 AND name LIKE '% transit (bytes)'"
        " GROUP BY 1", [rank],
    ).fetchall()  # fmt: skip
    assert dict(found) == pytest.approx({n: s for n, s in expected.items() if s})


@pytest.mark.slow
def test_bytes_of_a_collective_are_what_was_put_in_or_what_links_carried(runs):
    query = (
        "SELECT a.bytes, a.dtype, a.algorithm {events} JOIN collective_args a ON a.event_id = e.id"
    )
    assert rows(runs["two"], query + " ORDER BY e.ts_ns", 0) == [
        (4 * 4_097_000, "float", "mesh-ring"), (4 * 16_781_312, "float", "mesh-ring"),
        (4 * 37_752_832, "float", "mesh-ring"), (4 * 2_469_696, "float", "mesh-ring"),
    ]  # fmt: skip
    [(sent,)] = rows(
        runs["four"], query.replace("a.bytes, a.dtype, a.algorithm", "sum(a.bytes)"), 1
    )
    links = [
        of["Communication Bandwidth Info"]["SDMA"] for of in communication(FOUR_RANKS[1]).values()
    ]
    assert sent == pytest.approx(sum(link["Transit Size(MB)"] for link in links) * 1e6)
    said = runs["four"].sql("SELECT rank, count FROM problems WHERE what LIKE '%links carried%'")
    assert sorted(said.fetchall()) == [(0, 15), (1, 15), (2, 23), (3, 23)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder", "rank"), WITH_KERNELS)
def test_memory_is_that_of_memory_record(runs, name, folder, rank):
    expected: dict[str, float] = {}
    for row in told(folder, "memory_record.csv"):
        for amount in ("Allocated", "Reserved", "Active"):
            key = f"{row['Device Type'].lower()} {row['Component']} {amount.lower()} (bytes)"
            if value := row[f"Total {amount}(MB)"]:
                expected[key] = max(expected.get(key, 0), float(value) * MB)
    found = dict(
        runs[name].sql("SELECT name, max(value) FROM counters WHERE rank = $1 GROUP BY 1", [rank])
        .fetchall()
    )  # fmt: skip
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=0.5)
    blocks = told(folder, "operator_memory.csv")
    stored = runs[name].sql(
        "SELECT count(*), sum(bytes), count(freed_ns), sum(freed_ns - ts_ns), any_value(device)"
        " FROM allocations WHERE rank = $1", [rank],
    ).fetchall()  # fmt: skip
    freed = [row for row in blocks if row["Release Time(us)"]]
    held = round(sum(float(row["Duration(us)"]) * 1000 for row in freed))
    [(count, size, gone, lasted, device)] = stored
    assert (count, size, gone) == (
        len(blocks), round(sum(float(row["Size(KB)"]) * 1024 for row in blocks)), len(freed)
    )  # fmt: skip
    assert lasted == held and device == blocks[0]["Device Type"].lower()


@pytest.mark.slow
def test_allocations_belong_to_the_operator_that_made_them(runs):
    """Those of CANN itself (cann::Conv2D1) have no operator. The innermost may be a call in it."""
    blocks = told(TWO_RANKS[0], "operator_memory.csv")
    expected = Counter(row["Name"] for row in blocks if not row["Name"].startswith("cann::"))
    found = runs["two"].sql(
        "WITH RECURSIVE up(id, name, parent_id) AS ("
        " SELECT a.ts_ns, e.name, e.parent_id FROM allocations a JOIN events e ON e.id = a.event_id"
        "  WHERE a.rank = 0"
        " UNION ALL SELECT up.id, e.name, e.parent_id FROM up JOIN events e ON e.id = up.parent_id)"
        " SELECT id, list(name) FROM up GROUP BY 1"
    ).fetchall()  # fmt: skip
    assert len(found) == expected.total()
    moments = {round(float(row["Allocation Time(us)"].split(".")[0][-9:] + "." + row[
        "Allocation Time(us)"].split(".")[1]) * 1000): row["Name"] for row in blocks}  # fmt: skip
    first, first_told = (
        min(ts for ts, _ in found),
        min(when for when, name in moments.items() if not name.startswith("cann::")),
    )
    assert all(moments[ts - first + first_told] in around for ts, around in found)


@pytest.mark.slow
def test_every_kernel_knows_the_operator_that_launched_it(runs):
    found = rows(
        runs["two"],
        "SELECT l.kind, count(*) {events} LEFT JOIN events l ON l.id = e.launcher_id"
        " WHERE e.kind = 'kernel' GROUP BY 1", 0,
    )  # fmt: skip
    assert dict(found) == {"op": 187}
    [(name, delay)] = rows(
        runs["two"],
        "SELECT l.name, e.ts_ns - l.ts_ns {events} JOIN events l ON l.id = e.launcher_id"
        " WHERE e.name = 'Conv2D' ORDER BY e.ts_ns LIMIT 1", 0,
    )  # fmt: skip
    assert (name, delay > 0) == ("Conv2D", True)


@pytest.mark.slow
def test_copies_know_their_way_by_the_operator_behind_them(runs):
    found = rows(
        runs["two"],
        "SELECT a.direction, count(*) {events} JOIN kernel_args a ON a.event_id = e.id"
        " WHERE kind = 'memcpy' GROUP BY 1", 0,
    )  # fmt: skip
    assert dict(found)["host to device"] >= 2


@pytest.mark.slow
def test_backward_kernels_of_the_device_are_the_backward_phase(runs):
    """By hand: kernels launched on autograd's thread, 3105075."""
    [(begin, end)] = rows(
        runs["two"],
        "SELECT min(e.ts_ns), max(e.ts_ns + e.dur_ns) {events}"
        " JOIN events l ON l.id = e.launcher_id JOIN tracks k ON k.id = l.track_id"
        " WHERE e.kind = 'kernel' AND k.thread = 3105075", 0,
    )  # fmt: skip
    [(first,)] = rows(runs["two"], "SELECT min(ts_ns) {events} WHERE e.name = 'backward'", 0)
    [(update,)] = rows(runs["two"], "SELECT min(ts_ns) {events} WHERE e.name = 'update'", 0)
    assert first == begin and update >= end


@pytest.mark.slow
def test_kinds_of_the_timeline(runs):
    found = Counter(dict(rows(runs["two"], "SELECT kind, count(*) {events} GROUP BY 1", 0)))
    cpu_ops, marked = 860, 4  # the data loader, two of the optimizer, ProfilerStep
    assert found["op"] == cpu_ops - marked
    assert (found["data"], found["annotation"], found["python"]) == (1, 3, 1282)
    assert (found["kernel"], found["memcpy"], found["collective"]) == (187, 24, 4)
    # CANN's calls, Enqueue and Dequeue
    assert found["runtime"] + found["sync"] == 707 + 159 + 159 and found["sync"] == 8


@pytest.mark.slow
def test_ranks_devices_and_versions_come_from_the_content(runs):
    four = runs["four"].manifest
    assert [rank.rank for rank in four.ranks] == [0, 1, 2, 3]
    devices = runs["four"].sql("SELECT DISTINCT rank, device FROM tracks WHERE device LIKE 'npu%'")
    assert sorted(devices.fetchall()) == [(0, "npu:0"), (1, "npu:1"), (2, "npu:4"), (3, "npu:5")]
    about = ascend.read(_source(DATA / FOUR_RANKS[0]), Vocabulary()).about
    assert about.frameworks == {"torch_npu": "2.7.1", "CANN": "8.3.RC1"}
    assert about.world_size == 4


@pytest.mark.slow
def test_counters_of_the_hardware(runs):
    found = dict(
        runs["two"]
        .sql("SELECT name, max(value) FROM counters WHERE rank = 0 GROUP BY 1")
        .fetchall()
    )
    assert found["AI Core Freq (MHz)"] == 1800
    assert "HBM 0/Read (MB/s)" in found and "Acc PMU: read_bandwidth acc_id 0" in found


def _source(folder: Path) -> Source:
    [found] = ascend.claim(folder)
    return Source(ascend.NAME, [str(path) for path in found.paths])


@pytest.mark.slow
def test_a_timeline_alone_is_no_trace_of_torch_profiler(tmp_path, runs):
    name = "ASCEND_PROFILER_OUTPUT/trace_view.json"
    alone = shutil.copy(DATA / TWO_RANKS[1] / name, tmp_path / "any.json")
    assert ascend.recognise(peek(alone)) is not None
    import_traces([alone], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    [(kernels, lasted)] = rows(
        run, "SELECT count(*), sum(dur_ns) {events} WHERE kind = 'kernel'", 0
    )
    expected = told(TWO_RANKS[1], "op_statistic.csv")
    assert kernels == sum(int(row["Count"]) for row in expected)
    total = sum(float(row["Total Time(us)"]) for row in expected) * 1000
    assert lasted == pytest.approx(total, abs=kernels)


@pytest.mark.parametrize("inner", ["", "ASCEND_PROFILER_OUTPUT"])
def test_a_rank_may_be_given_by_itself(inner):
    if not DATA.exists():
        pytest.skip("recordings of an NPU: shared data absent")
    [found] = ascend.claim(DATA / TWO_RANKS[1] / inner)
    assert found.rank == 1 and found.first_unix_ns == 1736408883342182790


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("host_1_20260101000000_ascend_pt", "torch_npu.profiler.profiler import analyse"),
        ("host_1_20260101000000_ascend_ms", "mindspore.profiler.profiler import analyse"),
        ("PROF_000001_20260101_ABC", "msprof --export=on"),
    ],
)
def test_a_raw_recording_says_what_to_run(tmp_path, folder, command, capsys):
    raw = tmp_path / "data" / folder / "device_0" / "data"
    raw.mkdir(parents=True)
    (raw / "stars_soc.data.0.slice_0").write_bytes(b"\0\1\2" * 100)
    assert main(["import", str(tmp_path / "data"), "-o", str(tmp_path / "run")]) == 3
    told = capsys.readouterr().err
    assert "raw recording of an Ascend NPU" in told and command in told.replace("\n", " ")


def test_a_database_alone_says_what_to_run(tmp_path, capsys):
    output = tmp_path / "data" / "h_1_20260101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "ascend_pytorch_profiler_0.db").write_bytes(b"SQLite format 3\0")
    assert main(["import", str(tmp_path / "data"), "-o", str(tmp_path / "run")]) == 3
    assert "exported as a database" in capsys.readouterr().err


@pytest.mark.slow
def test_a_raw_rank_beside_a_readable_one_is_a_problem_and_no_more(tmp_path):
    if not DATA.exists():
        pytest.skip("recordings of an NPU: shared data absent")
    shutil.copytree(DATA / FOUR_RANKS[1], tmp_path / "data" / "a" / "rank_1_ascend_pt")
    raw = tmp_path / "data" / "b" / "rank_2_ascend_pt" / "PROF_1_2_3"
    raw.mkdir(parents=True)
    (raw / "data.slice_0").write_bytes(b"\0\1\2")
    import_traces([tmp_path / "data"], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    said = run.sql("SELECT rank, what FROM problems WHERE what LIKE '%raw recording%'").fetchall()
    assert [rank for rank, _ in said] == [2]
    assert rows(run, "SELECT count(*) {events} WHERE kind = 'collective'", 1) == [(15,)]
