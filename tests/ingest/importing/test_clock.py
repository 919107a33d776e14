"""When an imported run begins, and what is left when its files are gone."""

import json

import pytest

from strobe.ingest.building import table_state
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.recording import rank_state
from strobe.model.manifest import read_manifest
from strobe.model.schema import STORED_TABLES
from tests.ingest.importing.test_importer import (
    START_US,
    imported,
    names_by_rank,
    problems,
    trace,
    undated,
)

OTHER_CLOCK = (
    "its times cannot be compared with those of other ranks: it was placed so that it begins with"
    " the run"
)


def starts(run) -> list[tuple[int, int]]:
    return (
        open_run_dir(run)
        .sql(
            "SELECT t.rank, min(ts_ns) FROM events e JOIN tracks t ON t.id = e.track_id"
            " GROUP BY 1 ORDER BY 1"
        )
        .fetchall()
    )


def far_apart(*starts_us: float) -> bytes:
    """Events in an order that a first look does not see through: the earliest comes last."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "x" * 700, "pid": 7, "tid": 7, "ts": at, "dur": 1}
        for start in starts_us
        for at in (start + n for n in range(120))
    ]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


@pytest.mark.slow
def test_ranks_on_the_wall_clock_keep_their_distance(tmp_path):
    files = {"rank0.json": trace("a", start_us=START_US + 30), "rank1.json": trace("b")}
    run = imported(tmp_path, files)
    assert starts(run) == [(0, 30_000), (1, 0)]
    assert read_manifest(run).started_unix_ns == START_US * 1000


@pytest.mark.slow
@pytest.mark.parametrize("others", [{}, {"rank1.json": trace("b", start_us=START_US + 50)}])
def test_the_run_begins_with_its_first_event_wherever_that_is(tmp_path, others):
    files = {"rank0.json": far_apart(START_US + 1000, START_US - 500), **others}
    run = imported(tmp_path, files)
    expected = [(0, 0), (1, 550_000)]
    assert starts(run) == expected[: len(files)]
    assert read_manifest(run).started_unix_ns == (START_US - 500) * 1000
    assert table_state.is_current(run)
    for built in run.glob("rank_*/tables/built.json"):
        built.unlink()
    assert starts(run) == expected[: len(files)]  # built anew, at once in the right place


def test_every_moment_of_a_stored_table_is_known_to_move():
    from strobe.ingest.trace.trace import MOMENTS

    times = [c for t in STORED_TABLES for c in t.columns if c.name.endswith("_ns")]
    moments = {c.name for c in times if c.doc.startswith("When") or "since the run" in c.doc}
    assert moments == {*MOMENTS}


@pytest.mark.slow
def test_ranks_without_a_common_clock_are_aligned_and_told(tmp_path):
    files = {"rank0.json": undated("a", start_us=5), "rank1.json": undated("b", start_us=9000)}
    run = imported(tmp_path, files)
    assert starts(run) == [(0, 0), (1, 0)]
    assert problems(run) == {(name, OTHER_CLOCK): 1 for name in files}


@pytest.mark.slow
def test_a_dated_rank_beside_an_undated_one(tmp_path):
    files = {"rank0.json": trace("a"), "rank1.json": undated("b", start_us=77)}
    run = imported(tmp_path, files)
    assert starts(run) == [(0, 0), (1, 0)]
    assert problems(run) == {("rank1.json", OTHER_CLOCK): 1}


@pytest.mark.slow
def test_ranks_that_begin_days_apart_are_aligned_and_told(tmp_path):
    two_days_us = 2 * 24 * 3600 * 10**6
    files = {"rank0.json": trace("a"), "rank1.json": trace("b", start_us=START_US + two_days_us)}
    run = imported(tmp_path, files)
    assert starts(run) == [(0, 0), (1, 0)]
    assert problems(run) == {("rank1.json", OTHER_CLOCK): 1}


def test_a_rank_alone_needs_no_word(tmp_path):
    run = imported(tmp_path, {"a.json": undated("a", start_us=123)})
    assert starts(run) == [(0, 0)]
    assert problems(run) == {}


@pytest.mark.slow
def test_tables_stay_when_their_files_are_gone(tmp_path, monkeypatch):
    run = imported(tmp_path, {"a.json": trace("a"), "b.json": trace("b", rank=1)})
    (tmp_path / "traces" / "b.json").unlink()
    assert names_by_rank(run) == [(0, "a"), (1, "b")]
    assert ("sources.json", 1) not in [(s, c) for (s, _), c in problems(run).items()]
    monkeypatch.setattr(rank_state, "builder", lambda: 0)  # a newer Strobe reads it differently
    for _ in range(2):
        assert names_by_rank(run) == [(0, "a"), (1, "b")]
        told = {what: count for (source, what), count in problems(run).items() if "gone" in what}
        assert list(told.values()) == [1]
    (tmp_path / "traces" / "b.json").write_bytes(trace("new", rank=1))
    assert names_by_rank(run) == [(0, "a"), (1, "new")]
    assert "gone" not in str(problems(run))
