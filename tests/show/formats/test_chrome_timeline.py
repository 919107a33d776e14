import gzip
import json
from collections import Counter
from decimal import Decimal

import pytest

from strobe.errors import UsageError
from strobe.show.formats import chrome_timeline
from tests.helpers import make_run

AWKWARD = '层"norm"\\🎉'
DRAWING = f"""
    0/steps  step:step~1                 1001..9001  step=1
    0/steps  phase:gap                   1001..5000  step=1
    0/full/steps  annotation:strobe~window~1  4000..9500
    0/main   op:{AWKWARD}                5000..6007  step=1  scope=net
    0/main   op:aten::mm                 5000..5100  parent=3
    0/side   op:backward                 7000..8000
    0/main   mark:here                   8500..8500
    1/main   op:far                      0..1
"""
EXTRA = {
    "links": {"from_id": [3], "to_id": [5], "kind": ["forward_backward"]},
    "queues": {"rank": [0], "ts_ns": [5], "name": ["loader"], "length": [2]},
    "counters": {
        "rank": [0] * 3,
        "ts_ns": [0, 0, 2_000_000_000],
        "name": ["rss_bytes", "faults_total", "faults_total"],
        "value": [7.0, 10.0, 30.0],
    },
    "allocations": {
        "rank": [0], "address": [1], "bytes": [64], "ts_ns": [10], "freed_ns": [20],
        "device": ["cpu"],
    },
}  # fmt: skip

LABELS = 6  # batches of rows: allocations, counters, links, queues of rank 0, tracks of both


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "timeline.json"
    chrome_timeline.write(make_run(tmp_path / "run", DRAWING, EXTRA), path)
    return json.loads(path.read_text("utf-8"), parse_float=Decimal)["traceEvents"]


def test_every_event_is_there_once_and_none_is_half(events):
    assert Counter(event["ph"] for event in events) == {
        "X": 7, "i": 1, "s": 1, "f": 1, "C": 5, "M": 2 * 2 + 2 * 5 + LABELS,
    }  # fmt: skip


def test_times_are_exact_microseconds_and_names_survive(events):
    op = next(event for event in events if event["name"] == AWKWARD)
    assert (op["ts"], op["dur"], op["pid"]) == (Decimal("5.000"), Decimal("1.007"), 0)
    assert op["args"] == {"id": 3, "step": 1, "scope": "net"}


def test_a_process_for_each_rank_and_tracks_that_nest(events):
    named = {
        (event["pid"], event.get("tid")): event["args"]["name"]
        for event in events
        if event["name"] in ("process_name", "thread_name")
    }
    assert named == {
        (0, None): "rank 0", (1, None): "rank 1",
        (0, 1): "steps", (0, 2): "full", (0, 3): "main", (0, 4): "side", (1, 1): "main",
    }  # fmt: skip
    by_track = {}
    for event in events:
        if event["ph"] == "X":
            by_track.setdefault((event["pid"], event["tid"]), []).append(event)
    for spans in by_track.values():
        for outer, inner in zip(spans, spans[1:], strict=False):
            end = outer["ts"] + outer["dur"]
            assert inner["ts"] >= end or inner["ts"] + inner["dur"] <= end


def test_arrows_go_from_forward_to_backward(events):
    start, end = (next(e for e in events if e["ph"] == phase) for phase in "sf")
    assert (start["id"], start["tid"], start["ts"]) == (end["id"], 3, Decimal("5.000"))
    assert (end["tid"], end["ts"], end["bp"]) == (4, Decimal("7.000"), "e")


def test_counters_queues_and_memory(events):
    values = [(e["name"], e["ts"], e["args"]["value"]) for e in events if e["ph"] == "C"]
    assert values == [
        ("allocated bytes cpu", Decimal("0.010"), 64),
        ("allocated bytes cpu", Decimal("0.020"), 0),
        ("faults per second", Decimal("2000000.000"), 10),
        ("queue loader", Decimal("0.005"), 2),
        ("rss_bytes", 0, 7),
    ]


def test_gz_holds_the_same(tmp_path):
    run = make_run(tmp_path / "run", DRAWING, EXTRA)
    chrome_timeline.write(run, tmp_path / "a.json")
    chrome_timeline.write(run, tmp_path / "a.json.gz")
    packed = gzip.decompress((tmp_path / "a.json.gz").read_bytes())
    assert packed == (tmp_path / "a.json").read_bytes()


def test_an_empty_run_is_valid_json(tmp_path):
    chrome_timeline.write(make_run(tmp_path / "run", ""), tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["traceEvents"] == []


def test_a_place_that_cannot_be_written_leaves_nothing(tmp_path):
    run = make_run(tmp_path / "run", DRAWING)
    with pytest.raises(UsageError, match="cannot write"):
        chrome_timeline.write(run, tmp_path / "absent" / "a.json")


def test_a_failure_midway_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(chrome_timeline, "_COUNTERS", "SELECT error('boom')")
    with pytest.raises(Exception, match="boom"):
        chrome_timeline.write(make_run(tmp_path / "run", DRAWING), tmp_path / "a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
