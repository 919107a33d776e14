"""Every address, over real HTTP, answered by real workers."""

import csv
import io
import json
import time

import pytest

from strobe.web.base_dir import BaseDir
from tests.web.served import HOSTILE, HOSTILE_OPERATOR, STEP_NS, STEPS, write_run


def column(answered, name):
    place = [column["name"] for column in answered.json["columns"]].index(name)
    return [row[place] for row in answered.json["rows"]]


def test_health_tells_what_is_served(client, base):
    told = client.get("/api/health").json
    assert told["ok"] and told["base_dir"] == str(base)


def test_the_runs_page_lists_every_run_and_nothing_else(client, base):
    runs = {run["id"]: run for run in client.get("/api/runs").json["runs"]}
    made_by_other_tests = {"group/growing", "group/unseen"}
    expected = {"plain", "group/deep", "two-ranks", "live", "broken", HOSTILE, "link-inside"}
    assert set(runs) - made_by_other_tests == expected
    assert runs["plain"]["state"] == "finished"
    assert runs["plain"]["frameworks"] == {"torch": "2.13.0"}
    assert runs["plain"]["started_at"] == "2023-11-14T22:13:20.000Z"
    assert runs["plain"]["size_bytes"] > 1000
    assert runs["two-ranks"]["ranks"] == 2
    assert runs["live"]["state"] == "live"
    assert runs["broken"]["state"] == "broken" and "cannot be read" in runs["broken"]["problem"]
    assert "outside the base directory" in runs["link-inside"]["problem"]


def test_what_needs_reading_comes_later_and_without_being_asked_for(client):
    until = time.monotonic() + 90
    while time.monotonic() < until:
        runs = {run["id"]: run for run in client.get("/api/runs").json["runs"]}
        if runs["plain"]["digest"] == "ready":
            break
        assert runs["plain"]["digest"] == "working"
        time.sleep(0.2)
    assert runs["plain"]["steps"] == STEPS
    assert runs["plain"]["step_ns"] == STEP_NS
    assert runs["plain"]["verdict"]


def test_a_run_tells_what_it_is_and_which_tables_it_has(client):
    told = client.get("/api/runs/plain").json
    assert told["manifest"]["command"] == ["python", "train.py"]
    tables = {table["name"]: table for table in told["tables"]}
    assert tables["events"]["rows"] > 2 * STEPS
    assert tables["operators"]["rows"] is None  # not counted: that would mean working it out
    assert len(told["content"]) == 32


def test_a_run_in_a_folder_is_one_part_of_the_address(client):
    assert client.get("/api/runs/group%2Fdeep/table/steps").json["total"] == 5
    assert client.get("/api/runs/group/deep/table/steps").status == 404


def test_a_table_is_sorted_filtered_and_cut_by_the_server(client):
    first = client.get("/api/runs/plain/table/steps?limit=3&offset=5")
    assert column(first, "step") == [6, 7, 8] and first.json["total"] == STEPS
    last = client.get("/api/runs/plain/table/steps?order=step&desc=1&limit=2")
    assert column(last, "step") == [STEPS, STEPS - 1]
    some = client.get("/api/runs/plain/table/steps?where=step:ge:4,step:lt:7&columns=step")
    assert some.json["rows"] == [[4], [5], [6]] and some.json["total"] == 3
    found = client.get("/api/runs/plain/table/operators?q=SCRIPT&columns=name")
    assert found.json["rows"] == [[HOSTILE_OPERATOR]]
    units = {c["name"]: c["unit"] for c in first.json["columns"]}
    assert units["dur_ns"] == "ns" and units["ts_ns"] == "moment_ns" and units["step"] is None


def test_an_analysis_of_some_steps_is_that_of_these_steps(client):
    whole = client.get("/api/runs/plain/table/operators?columns=name,calls&order=name")
    part = client.get("/api/runs/plain/table/operators?columns=name,calls&order=name&steps=3:5")
    assert ["aten::mm", STEPS] in whole.json["rows"]
    assert part.json["rows"] == [["aten::mm", 3], *([f"aten::op{n}", 1] for n in (3, 4, 5))]


def test_a_table_of_one_rank(client):
    both = client.get("/api/runs/two-ranks/table/steps")
    one = client.get("/api/runs/two-ranks/table/steps?rank=1")
    assert both.json["total"] == 12
    assert one.json["total"] == 6 and set(column(one, "rank")) == {1}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("table/nonsense", "unknown table: nonsense"),
        ("table/steps?order=nonsense", "no column nonsense"),
        ("table/steps?limit=many", "limit must be a whole number"),
        ("table/steps?limit=9999999", "cannot show 9,999,999 rows on one page"),
        ("table/steps?where=step:near:3", "unknown operation in where: 'near'"),
        ("table/steps?where=step:eq:three", "column step contains numbers"),
        ("table/steps?steps=9:3", "step 9 is after step 3"),
        ("table/steps?steps=all", "is not a range of steps"),
        ("table/steps?rank=first", "rank must be a whole number"),
        ("table/steps?nonsense=1", "unknown parameter: 'nonsense'"),
        ("table/steps?format=excel", "unknown format: 'excel'"),
        ("table", "the name of the table is missing"),
        ("live?since=yesterday", "not a valid cursor"),
        ("advice/nonsense", "unknown rule: nonsense"),
    ],
)
def test_a_mistake_is_told_in_words(client, question, words):
    answered = client.get(f"/api/runs/plain/{question}")
    assert answered.status == 400
    assert answered.json["ok"] is False and words in answered.json["error"]


def test_a_table_as_a_file(client):
    answered = client.get("/api/runs/plain/table/steps?format=csv&columns=rank,step,dur_ns")
    rows = list(csv.reader(io.StringIO(answered.body.decode())))
    assert rows[0] == ["rank", "step", "dur_ns"] and len(rows) == STEPS + 1
    assert rows[2] == ["0", "2", str(STEP_NS)]
    assert answered.headers["content-disposition"] == 'attachment; filename="plain-steps.csv"'
    whole = client.get("/api/runs/plain/table/steps?format=json-file&columns=step")
    assert whole.json["rows"] == [[n] for n in range(1, STEPS + 1)]


def test_names_are_data_whatever_they_say(client):
    answered = client.get("/api/runs/plain/table/events?where=step:eq:1,kind:eq:op&columns=name")
    assert [HOSTILE_OPERATOR] in answered.json["rows"]
    assert answered.headers["content-type"] == "application/json"
    assert answered.headers["x-content-type-options"] == "nosniff"
    name = client.get("/api/runs/plain/table/operators?q=' OR 1=1 --".replace(" ", "%20"))
    assert name.status == 200 and name.json["rows"] == []


def test_summary_advice_rules_and_comparison(client):
    summary = client.get("/api/runs/plain/summary").json["summary"]
    assert summary["recorded"]["steps"] == STEPS and summary["verdict"]
    advice = client.get("/api/runs/plain/advice").json
    assert advice["verdict"] == summary["verdict"]
    assert set(advice["clear"]) == set(advice["clear_because"])
    rules = client.get("/api/rules").json["rules"]
    assert "data-starvation" in [rule["rule"] for rule in rules]
    assert "## How to fix" in client.get("/api/rules/host-gap").json["text"]
    told = client.get("/api/compare?a=plain&b=group%2Fdeep").json
    assert told["ok"] and (told["a"], told["b"]) == ("plain", "deep")
    assert client.get("/api/compare?a=plain").status == 400


def test_an_answer_is_asked_for_again_only_if_the_run_changed(serve, tmp_path):
    run = write_run(tmp_path / "base" / "run", steps=4)
    client = serve(tmp_path / "base")
    first = client.get("/api/runs/run/table/steps")
    again = client.get("/api/runs/run/table/steps", **{"If-None-Match": first.headers["etag"]})
    assert again.status == 304 and again.body == b""
    facts = run / "rank_0" / "raw" / "facts.jsonl"
    facts.write_text(facts.read_text() + json.dumps({"type": "nothing"}) + "\n")
    until = time.monotonic() + 60
    changed = again
    while changed.status == 304 and time.monotonic() < until:  # a run is read once a second
        time.sleep(0.05)
        changed = client.get(
            "/api/runs/run/table/steps", **{"If-None-Match": first.headers["etag"]}
        )
    assert changed.status == 200 and changed.headers["etag"] != first.headers["etag"]


def test_large_answers_are_packed_for_who_takes_it(client):
    plain = client.ask("/api/runs/plain/table/events?limit=50")
    packed = client.get("/api/runs/plain/table/events?limit=50", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(packed.body)
    assert packed.json == client.get("/api/runs/plain/table/events?limit=50").json


def test_a_live_run_tells_what_is_new(client):
    first = client.get("/api/runs/live/live").json
    assert first["is_live"] and first["reset"] and len(first["rows"]) == STEPS - 1
    rank, step, _, dur_ns, *parts = first["rows"][1]
    assert (rank, step, dur_ns) == (0, 2, STEP_NS) and sum(parts) == STEP_NS
    ended = client.get("/api/runs/plain/live").json
    assert not ended["is_live"] and len(ended["rows"]) == STEPS
    again = client.get(f"/api/runs/plain/live?since={ended['cursor']}").json
    assert again["rows"] == [] and not again["reset"] and again["cursor"] == ended["cursor"]


def test_a_broken_run_says_what_is_wrong_on_every_question(client):
    for question in ("", "/summary", "/advice", "/table/steps"):
        answered = client.get(f"/api/runs/broken{question}")
        assert answered.status == 422
        assert "cannot be read" in answered.json["error"] and "run.json" in answered.json["hint"]


@pytest.mark.parametrize("address", ["/api/nothing", "/api/runs/plain/nothing", "/nothing.js"])
def test_an_address_of_nothing_says_so(client, address):
    answered = client.get(address)
    assert answered.status == 404 and answered.json["error"] == "there is nothing at this address"


def test_runs_are_renamed_tagged_and_deleted_on_request(serve, tmp_path):
    base = tmp_path / "base"
    write_run(base / "one", steps=3)
    client = serve(base)
    tagged = client.post("/api/runs/one/tags", {"tags": ["baseline", "A100", "baseline"]})
    assert tagged.json["tags"] == ["baseline", "A100"]
    assert client.get("/api/runs").json["runs"][0]["tags"] == ["baseline", "A100"]
    renamed = client.post("/api/runs/one/rename", {"name": "two"})
    assert renamed.json["id"] == "two" and (base / "two").is_dir() and not (base / "one").exists()
    assert client.get("/api/runs/two/table/steps").json["total"] == 3
    assert client.get("/api/runs/one/table/steps").status == 404
    refused = client.post("/api/runs/two/delete", {"confirm": "one"})
    assert refused.status == 400 and (base / "two").is_dir()
    assert client.post("/api/runs/two/delete", {"confirm": "two"}).json == {"ok": True, "left": []}
    assert list(base.iterdir()) == [] and client.get("/api/runs").json["runs"] == []


def test_every_run_that_is_listed_can_be_found(base):
    folder = BaseDir(base)
    for entry in folder.listing():
        if not entry["problem"] or entry["id"] == "broken":
            assert folder.find(entry["id"]).is_dir()
