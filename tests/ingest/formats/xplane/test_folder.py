"""Folders of profiles: hosts are ranks, times are windows, what was derived is not read again."""

import gzip
from pathlib import Path

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.formats.xplane import jax_trace
from strobe.ingest.importing.discovery import discover
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import Source
from strobe.ingest.trace.spans import Vocabulary
from tests.ingest.formats.xplane.xspace import START_NS, PlaneWriter, space, task_plane

JSON = b'{"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/host:CPU"}},{}]}'


def profile(folder: Path, time: str, host: str, start_s: float = 0, length_s: float = 1) -> Path:
    plane = PlaneWriter("/host:CPU")
    plane.line(1, "python", 0, [plane.event(f"work of {host} at {time}", 10, 5)])
    start = START_NS + round(start_s * 1e9)
    place = folder / "plugins" / "profile" / time
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{host}.xplane.pb"
    file.write_bytes(space(plane, task_plane(start, start + round(length_s * 1e9)), host=host))
    (place / f"{host}.trace.json.gz").write_bytes(gzip.compress(JSON))
    (place / "perfetto_trace.json.gz").write_bytes(gzip.compress(JSON))
    (place / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"\n\x05hello")
    return file


def ranks(folder: Path) -> list[tuple[int | None, str, str]]:
    seen = [one.found for one in discover([folder], folder / "run").traces]
    found = [(f.rank, f.paths[0].parent.name, f.paths[0].name) for f in seen]
    return sorted(found, key=lambda one: (one[0] or 0, one[1]))


def test_one_host_is_one_trace(tmp_path):
    profile(tmp_path, "a", "vm")
    assert ranks(tmp_path) == [(None, "a", "vm.xplane.pb")]


@pytest.mark.slow
def test_hosts_are_ranks_in_the_order_of_their_numbers(tmp_path):
    for worker in (10, 2, 0):
        profile(tmp_path, "a", f"t1v-w-{worker}")
    assert ranks(tmp_path) == [
        (0, "a", "t1v-w-0.xplane.pb"), (1, "a", "t1v-w-2.xplane.pb"),
        (2, "a", "t1v-w-10.xplane.pb"),
    ]  # fmt: skip
    import_traces([tmp_path], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    found = run.sql(
        "SELECT rank, e.name FROM events e JOIN tracks t ON t.id = track_id ORDER BY rank"
    )
    names = [f"work of t1v-w-{worker} at a" for worker in (0, 2, 10)]
    assert found.fetchall() == list(enumerate(names))


@pytest.mark.slow
def test_later_profiles_of_a_host_are_its_next_windows(tmp_path):
    for number, time in enumerate(("b", "a")):
        for host in ("one", "two"):
            profile(tmp_path, time, host, start_s=number * 100)
    assert ranks(tmp_path) == [
        (0, "a", "one.xplane.pb"), (0, "b", "one.xplane.pb"), (1, "a", "two.xplane.pb"),
        (1, "b", "two.xplane.pb"),
    ]  # fmt: skip
    import_traces([tmp_path], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    found = run.sql("SELECT ts_ns FROM events WHERE name LIKE 'work of one%' ORDER BY 1")
    assert [ts for (ts,) in found.fetchall()] == [10, 100 * 10**9 + 10]


def test_profiles_of_a_host_that_overlap_are_of_several_processes(tmp_path):
    profile(tmp_path, "a", "vm", 0, 10)
    profile(tmp_path, "b", "vm", 1, 10)
    profile(tmp_path, "c", "vm", 20, 10)
    assert ranks(tmp_path) == [
        (0, "a", "vm.xplane.pb"), (0, "c", "vm.xplane.pb"), (1, "b", "vm.xplane.pb"),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_folder_that_names_its_rank_is_believed(tmp_path):
    for rank in (1, 0):
        profile(tmp_path / f"rank_{rank}", "a", "vm", start_s=0.1 * rank)
    import_traces([tmp_path], tmp_path / "run")
    found = open_run_dir(tmp_path / "run").sql(
        "SELECT rank, ts_ns FROM events JOIN tracks t ON t.id = track_id ORDER BY 1"
    )
    assert found.fetchall() == [(0, 10), (1, 100_000_010)]


def test_a_host_that_left_only_json_is_read_from_it(tmp_path):
    profile(tmp_path, "a", "one").with_name("two.trace.json.gz").write_bytes(gzip.compress(JSON))
    traces = discover([tmp_path], tmp_path / "run").traces
    found = {(seen.reader, seen.found.paths[0].name) for seen in traces}
    assert found == {
        ("XPlane (JAX, XLA)", "one.xplane.pb"), ("JAX trace JSON", "two.trace.json.gz"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["vm.trace.json.gz", "perfetto_trace.json.gz"])
def test_json_given_by_name_gives_way_to_the_profile_beside_it(tmp_path, name):
    whole = profile(tmp_path, "a", "vm")
    (seen,) = discover([whole.with_name(name)], tmp_path / "run").traces
    assert (seen.reader, seen.found.paths) == (jax_trace.NAME, (whole,))
    both = discover([whole, whole.with_name(name)], tmp_path / "run").traces
    assert [one.found.paths for one in both] == [(whole,)]
    trace = jax_trace.read(Source(seen.reader, [str(whole)]), Vocabulary())
    assert trace.spans.rows == 1 and trace.is_unix
    assert [what for _, what in trace.said.counts] == [
        "it was read in place of the JSON beside it: it is complete"
    ]
