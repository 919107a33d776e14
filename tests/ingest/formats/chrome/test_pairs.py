"""Beginnings and ends in files that are larger than memory: the same spans as in small ones."""

import json
import random

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.trace import column_spool, span_spool

TABLES = ("events", "tracks", "counters", "problems")


def many_edges() -> list[dict]:
    """Of every phase, with equal times, ids used again, halves, and some that last all along."""
    source = random.Random(5)
    phases = "BEBEBEbebebenSFTpiXCC"
    found = [{"ph": phase, "name": "all along", "id": 99, "tid": 1, "ts": 0} for phase in "BbS"]
    for number in range(1500):
        at = source.choice((number, number, number // 8 * 8, source.randrange(1500)))
        event = {"ph": source.choice(phases), "ts": at, "tid": source.randrange(1, 4)}
        event |= {"name": source.choice(("a", "b", "")), "cat": source.choice("xy")}
        event |= {"id": source.choice((1, 2, "0x1", number // 3)), "dur": source.choice((0, 3, 40))}
        event |= {"args": {"used": number, "free": -1}} if event["ph"] == "C" else {}
        found.append(event)
    found += [{"ph": phase, "name": "late", "id": 7, "tid": 2, "ts": 900} for phase in "BbS"]
    source.shuffle(found)
    return [{"pid": 1 + event["tid"] // 3, **event} for event in found]


def imported(folder) -> dict[str, list]:
    folder.mkdir()
    (folder / "trace.json").write_text(json.dumps(many_edges()))
    import_traces([folder / "trace.json"], folder / "run")
    run = open_run_dir(folder / "run")
    files = len([*(folder / "run").rglob("counters*.parquet")])
    assert (files > 2) == (span_spool.SLICE_ROWS < 100)
    for path in (folder / "run").rglob("events*.parquet"):
        stored = run.sql(f"SELECT ts_ns, id FROM '{path}'").fetchall()
        assert stored == sorted(stored)  # a stretch of time is a few row groups
    left = [*(folder / "run").rglob(".pile-*"), *(folder / "run").rglob(".spool-*")]
    assert not left
    # What overlaps on a thread has no parent that slices would agree on.
    columns = {"events": "* EXCLUDE parent_id"}
    return {
        table: run.sql(f"SELECT {columns.get(table, '*')} FROM {table} ORDER BY ALL").fetchall()
        for table in TABLES
    }


@pytest.mark.parametrize("slice_rows, share_rows", [(60, 10**6), (10**6, 50), (60, 50)])
def test_in_slices_and_shares_the_tables_are_the_same(
    tmp_path, monkeypatch, slice_rows, share_rows
):
    whole = imported(tmp_path / "whole")
    assert len(whole["events"]) > 500 and len(whole["tracks"]) > 10 and len(whole["problems"]) == 3
    assert len(whole["counters"]) > 200
    monkeypatch.setattr(span_spool, "SLICE_ROWS", slice_rows)
    monkeypatch.setattr(column_spool, "SHARE_ROWS", share_rows)
    monkeypatch.setattr(column_spool, "HELD_ROWS", 50)
    assert imported(tmp_path / "parts") == whole
