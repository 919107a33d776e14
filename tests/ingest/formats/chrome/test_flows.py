"""Arrows of files that are larger than memory: the same as of those that are not."""

import json
import random

import pytest

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.trace import column_spool, span_spool

LINKS = """
    SELECT f.ts_ns, f.name, t.ts_ns, t.name, links.kind FROM links
    JOIN events f ON f.id = from_id JOIN events t ON t.id = to_id ORDER BY ALL
"""


def many_flows() -> list[dict]:
    """Spans in spans on three threads; arrows of every kind between them, some with one end."""
    source = random.Random(3)
    found = []
    for number in range(300):
        place = {"pid": 1, "tid": number % 3}
        at = number * 10
        found.append({"ph": "X", "name": f"outer {number % 7}", "ts": at, "dur": 28, **place})
        inner = {"ph": "X", "name": f"inner {number % 5}", "ts": at + 3, "dur": 4, **place}
        if source.random() < 0.3:
            inner |= {"bind_id": number // 2, source.choice(("flow_in", "flow_out")): True}
        found.append(inner)
        flow = {
            "name": f"flow {number % 2}",
            "cat": "c",
            "id": source.choice((number, number // 3)),
        }
        for phase in source.choices(("s", "t", "f"), k=3):
            more = {"bp": "e"} if source.random() < 0.5 else {}
            when = at + source.randrange(60)
            found.append({"ph": phase, **flow, "ts": when, **more, **place})
    # A span that lasts, so that ends far from its beginning belong to it.
    found.append({"ph": "X", "name": "all along", "ts": 0, "dur": 5000, "pid": 1, "tid": 9})
    for at in range(5, 4000, 400):
        for phase, tid in (("s", 9), ("f", 1)):
            found.append({"ph": phase, "name": "far", "id": at, "ts": at, "pid": 1, "tid": tid})
    source.shuffle(found)
    return found


def linked(folder) -> tuple[list, list]:
    path = folder / "trace.json"
    path.write_text(json.dumps(many_flows()))
    import_traces([path], folder / "run")
    run = open_run_dir(folder / "run")
    told = run.sql("SELECT what, count FROM problems ORDER BY ALL").fetchall()
    assert not list((folder / "run").rglob(".pile-*")) + list((folder / "run").rglob(".spool-*"))
    return run.sql(LINKS).fetchall(), told


@pytest.mark.parametrize("slice_rows, share_rows", [(50, 10**6), (10**6, 40), (50, 40)])
def test_in_slices_and_shares_they_are_the_same(tmp_path, monkeypatch, slice_rows, share_rows):
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    links, told = linked(tmp_path / "whole")
    assert len(links) > 300 and told
    monkeypatch.setattr(span_spool, "SLICE_ROWS", slice_rows)
    monkeypatch.setattr(column_spool, "SHARE_ROWS", share_rows)
    monkeypatch.setattr(column_spool, "HELD_ROWS", 50)
    assert linked(tmp_path / "parts") == (links, told)
