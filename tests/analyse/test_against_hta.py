"""The device analyses side by side with HolisticTraceAnalysis, on real traces.

hta_answers.json holds HTA's answers; scripts/hta_answers.py made it. Times there are microseconds.
Where the two differ, and why, is told in docs/explain/compared-with-hta.md and shown here by adding
to the events what HTA counts in.
"""

import json
from pathlib import Path

import pytest

from strobe.cli import main
from strobe.ingest.building.opening import open_run_dir
from strobe.reading import OpenedRun
from tests.helpers import text

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "torch"
ANSWERS = json.loads((Path(__file__).parent / "hta_answers.json").read_text())["traces"]
READ = [name for name, answers in ANSWERS.items() if "ranks" in answers]
# HTA counts things in that are no work of the device: shown one by one below.
DIFFERENT = {"alexnet", "b200_eager", "mtia"}
ALIKE = [name for name in READ if name not in DIFFERENT]
# Times in whole microseconds: lengths are cut, and moments coincide.
COARSE = {"two_ranks", "alexnet", "resnet50_0", "resnet50_4"}
# The calls that HTA's launch statistics know by name.
HTA_LAUNCHES = "('cudaLaunchKernel', 'cudaLaunchKernelExC', 'cudaMemcpyAsync', 'cudaMemsetAsync')"
HTA_DIRECTIONS = {
    "Memcpy HtoD": "host to device",
    "Memcpy DtoH": "device to host",
    "Memcpy DtoD": "device to device",
    "Memset": None,
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Runs by the name of their trace, imported when first asked for."""
    known = {}

    def get(name):
        if name not in known:
            files = [TRACES / file for file in ANSWERS[name]["files"]]
            if not all(file.exists() for file in files):
                pytest.skip("shared data absent")
            folder = tmp_path_factory.mktemp("runs") / name
            assert main(["import", *map(str, files), "-o", str(folder), "-q"]) == 0
            known[name] = OpenedRun(open_run_dir(folder))
        return known[name]

    yield get
    for run in known.values():
        run.close()


def of_ranks(name, question):
    return [(int(rank), answers[question]) for rank, answers in ANSWERS[name]["ranks"].items()]


def rows(run, query):
    return run.sql(query).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALIKE)
def test_temporal_breakdown(opened, name):
    for rank, hta in of_ranks(name, "temporal"):
        (found,) = rows(
            opened(name),
            "SELECT idle_ns, compute_ns, communication_ns + memory_ns, dur_ns FROM device_time"
            f" WHERE step IS NULL AND rank = {rank}",
        )
        assert found == tuple(round(1000 * value) for value in hta.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_ranks", "resnet50_0", "alexnet"])
def test_kernel_types(opened, name):
    """HTA's exclusive times of combinations, added up by our order. Only of whole microseconds."""
    (found,) = rows(
        opened(name),
        "SELECT sum(compute_ns), sum(communication_ns), sum(memory_ns) FROM device_time"
        " WHERE step IS NULL",
    )
    parts = {"COMPUTATION": 0, "COMMUNICATION": 0, "MEMORY": 0}
    for types, us in of_ranks(name, "kernel_types")[0][1].items():
        parts[next(part for part in parts if part in types)] += 1000 * us
    assert found == tuple(parts.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in READ if name not in ("b200_eager", "mtia")])
def test_idle_time_breakdown(opened, name):
    for rank, hta in of_ranks(name, "idle"):
        found = rows(
            opened(name),
            "SELECT stream_id, host_wait_ns, kernel_wait_ns, other_ns FROM idle"
            f" WHERE stream IS NOT NULL AND rank = {rank}",
        )
        assert {str(stream) for stream, *_ in found} == set(hta)
        for stream, *parts in found:
            wanted = [
                hta[str(stream)].get(part, 0) for part in ("host_wait", "kernel_wait", "other")
            ]
            # HTA rounds to a hundredth of a microsecond.
            assert [ns / 1000 for ns in parts] == pytest.approx(wanted, abs=0.0051)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_ranks", "nccl_data"])
def test_overlap_of_communication_and_computation(opened, name):
    for rank, hta in of_ranks(name, "overlap"):
        ((found,),) = rows(
            opened(name),
            f"SELECT round(100 * overlapped_share, 2) FROM overlap WHERE rank = {rank}",
        )
        assert found == hta


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in READ if name != "mtia"])
def test_kernel_breakdown(opened, name):
    for rank, hta in of_ranks(name, "kernels"):
        found = {
            kernel: figures
            for kernel, *figures in rows(
                opened(name),
                "SELECT name, total_ns, min_ns, max_ns, mean_ns FROM kernels"
                f" WHERE rank = {rank} ORDER BY total_ns DESC",
            )
        }
        for kernel, wanted in hta["top"].items():
            assert [ns / 1000 for ns in found[kernel]] == pytest.approx(
                list(wanted.values()), abs=0.0006
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALIKE if name != "vllm_graph"])
def test_queue_length(opened, name):
    for rank, hta in of_ranks(name, "queue"):
        found = rows(
            opened(name),
            f"""SELECT stream_id, count(*), avg(length), min(length), quantile_cont(length, 0.25),
                       median(length), quantile_cont(length, 0.75), max(length)
                FROM launch_queue WHERE rank = {rank} GROUP BY stream_id""",
        )
        assert {str(stream) for stream, *_ in found} == set(hta)
        for stream, count, mean, *rest in found:
            wanted_count, wanted_mean, *wanted = hta[str(stream)].values()
            assert (count, rest) == (wanted_count, wanted)
            # A launch and a start at the same microsecond: HTA takes them in any order.
            assert abs(mean - wanted_mean) * count <= coinciding(opened(name), rank, stream)


def coinciding(run, rank, stream):
    ((count,),) = rows(
        run,
        f"""SELECT coalesce(sum(n), 0) FROM (
                SELECT count(*) AS n FROM launch_queue
                WHERE rank = {rank} AND stream_id = {stream}
                GROUP BY ts_ns HAVING min(change) < max(change))""",
    )
    return count or 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in READ if name not in ("mtia", "mi250")])
def test_memory_bandwidth(opened, name):
    """Kineto knows lengths better than it writes them, so that its rate may lie a little lower."""
    for rank, hta in of_ranks(name, "bandwidth"):
        for kind, wanted in hta.items():
            direction = HTA_DIRECTIONS[kind]
            is_it = f"a.direction = '{direction}'" if direction else "e.kind = 'memset'"
            cut_ns = 1000 if name in COARSE else 10
            (found,) = rows(
                opened(name),
                f"""SELECT count(*), avg(bytes / greatest(dur_ns, 1)),
                           avg(bytes / (dur_ns + {cut_ns})), min(bytes / greatest(dur_ns, 1)),
                           min(bytes / (dur_ns + {cut_ns})), max(bytes / greatest(dur_ns, 1)),
                           max(bytes / (dur_ns + {cut_ns}))
                    FROM events e JOIN tracks t ON t.id = e.track_id
                    JOIN kernel_args a ON a.event_id = e.id
                    WHERE rank = {rank} AND e.kind IN ('memcpy', 'memset') AND bytes > 0
                      AND {is_it}""",
            )
            assert found[0] == wanted["count"]
            for figure, most, least in zip(
                ("mean", "min", "max"), found[1::2], found[2::2], strict=True
            ):
                assert least * 0.9999 <= wanted[figure] <= most * 1.0001, (kind, figure)


@pytest.mark.parametrize("name", ["ns_resolution", "nccl_data", "h100_timesformer", "b200_eager"])
def test_memory_bandwidth_of_fine_times_is_the_same(opened, name):
    for rank, hta in of_ranks(name, "bandwidth"):
        found = {
            direction: figures
            for direction, *figures in rows(
                opened(name),
                f"""SELECT direction, sum(calls), sum(mean_bytes_per_s * calls) / sum(calls) / 1e9,
                           min(min_bytes_per_s) / 1e9, max(max_bytes_per_s) / 1e9
                    FROM copies WHERE rank = {rank} GROUP BY direction""",
            )
        }
        for kind, wanted in hta.items():
            figures = [wanted[figure] for figure in ("count", "mean", "min", "max")]
            assert found[HTA_DIRECTIONS[kind]] == pytest.approx(figures, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_launch_statistics(opened, name):
    for rank, hta in of_ranks(name, "launches"):
        if not hta["count"] or name == "mtia":
            continue
        (found,) = rows(
            opened(name),
            f"""SELECT sum(calls), sum(launch_ns), sum(total_ns), sum(queued_ns) FROM launches
                WHERE rank = {rank} AND launch IN {HTA_LAUNCHES}""",
        )
        count, *times = hta.values()
        assert found == (count, *(round(1000 * us) for us in times))


# Where we differ: what HTA counts in, added to our events, gives HTA's number.


def idle_us(run, more="false"):
    """Idle time from the first to the last of device work and `more`, a condition on events."""
    ((dur, covered),) = rows(
        run,
        f"""
        SELECT max(end_ns) - min(ts_ns), sum(greatest(0, end_ns - greatest(ts_ns, reach_ns))) FROM (
            SELECT ts_ns, end_ns, coalesce(max(end_ns) OVER (
                ORDER BY ts_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), ts_ns
            ) AS reach_ns
            FROM (SELECT e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
                  FROM events e JOIN tracks t ON t.id = e.track_id
                  WHERE t.device <> 'cpu'
                    AND e.kind IN ('kernel', 'collective', 'memcpy', 'memset') OR {more}))
        """,
    )
    return (dur - covered) / 1000


def test_hta_takes_the_hosts_waits_for_work_of_the_device(opened):
    hta = ANSWERS["alexnet"]["ranks"]["0"]["temporal"]
    run = opened("alexnet")
    ours = rows(run, "SELECT idle_ns / 1000, compute_ns / 1000 FROM device_time WHERE step IS NULL")
    assert ours == [(idle_us(run), hta["compute_us"])]
    waits = "e.kind = 'sync' AND t.device <> 'cpu'"
    assert idle_us(run, waits) == hta["idle_us"] != idle_us(run)


def test_hta_takes_an_operator_that_names_a_stream_for_a_kernel(opened):
    hta = ANSWERS["b200_eager"]["ranks"]["0"]["temporal"]
    run = opened("b200_eager")
    kernel_like = """e.id IN (SELECT id FROM events WHERE kind = 'op' AND name LIKE 'triton%')"""
    assert rows(run, f"SELECT count(*) FROM events e WHERE {kernel_like}") == [(1,)]
    assert idle_us(run, kernel_like) == pytest.approx(hta["idle_us"], abs=0.001)
    assert idle_us(run) > hta["idle_us"] + 70


def test_hta_takes_overlapping_kernels_of_a_stream_for_negative_idle_time(opened):
    hta = ANSWERS["b200_eager"]["ranks"]["0"]["idle"]["7"]
    query = """SELECT sum(ts_ns - before_ns) FILTER (ts_ns - before_ns {}) / 1000 FROM (
        SELECT ts_ns, lag(ts_ns + dur_ns) OVER (ORDER BY ts_ns) AS before_ns
        FROM events e JOIN tracks t ON t.id = e.track_id WHERE t.device = 'cuda:0'
        AND kind IN ('kernel', 'collective', 'memcpy', 'memset'))"""
    run = opened("b200_eager")
    ((with_negative,),) = rows(run, query.format("IS NOT NULL"))
    ((gaps,),) = rows(run, query.format("> 0"))
    ((ours,),) = rows(run, "SELECT idle_ns / 1000 FROM idle WHERE stream_id = 7")
    assert with_negative == pytest.approx(sum(hta.values()), abs=0.011)
    assert ours == pytest.approx(gaps, abs=0.001) and ours > with_negative


def test_graph_launches_are_in_the_queue(opened):
    """HTA knows launches by name, and hipGraphLaunch is none of them."""
    assert ANSWERS["vllm_graph"]["ranks"]["0"]["queue"]["0"]["count"] == 2 * 13
    found = rows(
        opened("vllm_graph"),
        "SELECT launch = 'hipGraphLaunch', sum(calls)::INT FROM launches GROUP BY 1 ORDER BY 1",
    )
    assert found == [(False, 13), (True, 421)]


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in READ])
def test_traces_that_hta_cannot_read(opened, name):
    found = opened(name).sql(
        "SELECT dur_ns > 0, compute_ns > 0 FROM device_time ORDER BY step NULLS FIRST"
    )
    assert text(found).splitlines()[1] == "True True"


@pytest.mark.slow
def test_mtia_computes_as_long_as_hta_says(opened):
    """HTA leaves out copies that name no stream, so that only computation is the same."""
    ((found,),) = rows(opened("mtia"), "SELECT compute_ns FROM device_time WHERE step IS NULL")
    assert found == round(1000 * ANSWERS["mtia"]["ranks"]["0"]["temporal"]["compute_us"])
