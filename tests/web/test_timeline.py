"""The timeline over HTTP, from a server without an index to the download."""

import gzip
import json
from urllib.parse import quote

import pytest

from strobe.timeline.packet import unpacked
from tests.web.served import HOSTILE, HOSTILE_OPERATOR, STEPS, write_run
from tests.web.test_live import grow

ADDRESS = "/api/runs/plain/timeline"


@pytest.fixture(scope="module")
def meta(client):
    """What the timeline is about, once its index was made."""
    assert client.get(f"{ADDRESS}/index").json == {"ok": True}
    told = client.get(ADDRESS).json
    assert told["ready"]
    return told


def test_a_run_without_an_index_says_so_and_makes_it_when_asked(client, base):
    # One that nobody has listed yet: those are given an index in the background.
    write_run(base / "group" / "unseen", steps=3)
    address = f"/api/runs/{quote('group/unseen', safe='')}/timeline"
    assert client.get(address).json == {"ok": True, "ready": False}
    refused = client.get(f"{address}/tiles?shift=0&first=0&last=9")
    assert refused.status == 422 and "timeline/index" in refused.json["hint"]
    assert client.get(f"{address}/index").json["ok"]
    assert client.get(address).json["ready"]


def test_tracks_and_their_rows(meta):
    names = [track["name"] for track in meta["tracks"]]
    assert "steps" in names
    first = 0
    for track in meta["tracks"]:
        assert track["first_row"] == first
        first += track["rows"]
    assert sum(track["events"] for track in meta["tracks"]) == meta["events"]
    assert meta["end_ns"] > meta["begin_ns"]


def test_a_tile_is_columns_of_bytes(client, meta):
    answer = client.get(f"{ADDRESS}/tiles?shift=12&first=0&last=6000&rows=0-1")
    assert answer.status == 200 and answer.headers["content-type"] == "application/octet-stream"
    about, columns = unpacked(answer.body)
    assert about == {"shift": 12, "first": 0, "buckets": 6000}
    assert len(columns["count_of_row"]) == 2
    assert columns["count_of_row"].sum() == len(columns["x"]) == len(columns["paint"]) > STEPS


def test_from_a_search_to_an_event_to_its_arguments(client, meta):
    found = client.get(f"{ADDRESS}/search?q=aten%3A%3Aop7").json
    assert found["total"] == 1 and found["names"][0]["name"] == "aten::op7"
    hit = client.get(f"{ADDRESS}/search?q=aten%3A%3Aop7&way=next&from=0").json
    assert (hit["number"], hit["total"]) == (1, 1)
    event = hit["event"]
    told = client.get(f"{ADDRESS}/event/{event['id']}").json
    assert told["event"] == event and told["event"]["kind"] == "op"
    at = f"row={event['row']}&t0={event['ts_ns']}&t1={event['ts_ns'] + 1}"
    assert client.get(f"{ADDRESS}/at?{at}").json["event"] == event
    assert client.get(f"{ADDRESS}/arguments/{event['id']}").json["step"] == 7
    names = client.get(f"{ADDRESS}/names?first=0").json["names"]
    assert names[event["code"]] == ["aten::op7", "op"]


def test_hostile_names_are_data(client, meta):
    found = client.get(f"{ADDRESS}/search?q={quote(HOSTILE_OPERATOR)}").json
    assert [name["name"] for name in found["names"]] == [HOSTILE_OPERATOR]
    address = f"/api/runs/{quote(HOSTILE, safe='')}/timeline"
    assert client.get(f"{address}/index").json["ok"]


def test_an_area_and_its_longest_events_as_tables_and_as_csv(client, meta):
    span = f"t0={meta['begin_ns']}&t1={meta['end_ns']}"
    found = client.get(f"{ADDRESS}/area?{span}").json
    counts = {(row[0], row[1]): row[2] for row in found["rows"]}
    assert counts["aten::mm", "op"] == STEPS
    assert [column["name"] for column in found["columns"]][:3] == ["name", "kind", "count"]
    csv = client.get(f"{ADDRESS}/area?{span}&format=csv")
    assert csv.headers["content-disposition"].startswith("attachment")
    assert (
        csv.body.decode().splitlines()[0] == "name,kind,count,total_ns,self_ns,mean_ns,longest_ns"
    )
    longest = client.get(f"{ADDRESS}/events?{span}&limit=3").json
    assert len(longest["rows"]) == 3
    everything = client.get(f"{ADDRESS}/events?{span}&limit=5000&format=csv").body.decode()
    assert len(everything.splitlines()) == 1 + meta["events"]


def test_steps_as_a_stretch_of_time(client, meta):
    told = client.get(f"{ADDRESS}/steps?steps=3:4").json
    assert told["ok"] and 0 < told["t1"] - told["t0"] < meta["end_ns"] - meta["begin_ns"]
    assert client.get(f"{ADDRESS}/steps?steps=300:400").status == 400


def test_the_whole_timeline_can_be_taken_away(client, meta):
    answer = client.get(f"{ADDRESS}/export")
    assert answer.status == 200
    assert 'filename="plain.timeline.json.gz"' in answer.headers["content-disposition"]
    trace = json.loads(gzip.decompress(answer.body))
    assert {"ph", "ts"} <= set(trace["traceEvents"][-1])


@pytest.mark.parametrize(
    "question",
    [
        "tiles?shift=0&first=0", "tiles?shift=x&first=0&last=9", "tiles?shift=0&first=9&last=0",
        "tiles?shift=0&first=0&last=9&rows=0-9999999", "tiles?shift=0&first=0&last=9&rows=a",
        "tiles?shift=0&first=0&last=9&rows=999", "search?q=", "search?q=mm&way=up",
        "search?q=mm&way=next&position=99999999", "event/x", "event/99999999999999", "event",
        "at?row=9999&t0=0&t1=1", "area?t0=9&t1=3", "area?t0=0", "steps?steps=a:b",
        "curves?curves=999&t0=0&t1=9&buckets=10", "arguments/-1", "names?first=x",
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(client, meta, question):
    answer = client.get(f"{ADDRESS}/{question}")
    assert answer.status == 400, answer.body
    assert answer.json["error"] and answer.json["hint"]


def test_a_page_goes_on_looking_at_the_index_it_names_while_the_run_grows(client, base):
    run = write_run(base / "group" / "growing", ended=None, steps=4)
    address = f"/api/runs/{quote('group/growing', safe='')}/timeline"
    assert client.get(f"{address}/index").json["ok"]
    first = client.get(address).json
    assert first["ready"] and first["is_live"]
    grow(run, 9)
    # Not current any more, and still the last there is.
    assert client.get(address).json["index"] == first["index"]
    assert client.get(f"{address}/names?first=0&index={first['index']}").json["ok"]
    assert client.get(f"{address}/names?first=0&index=another").status == 422
