"""Any Chrome trace: events in, tables out."""

import contextlib
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from strobe.errors import UnreadableTrace
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.building.tables import tables
from strobe.ingest.formats import compressed
from strobe.ingest.formats.chrome import reader as chrome
from strobe.ingest.formats.chrome.chunks import EventStream
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.trace.spans import Vocabulary
from tests.helpers import text

SHARED = Path(__file__).parents[5] / "shared" / "data"


def event(ph: str, name: str, ts, **more) -> dict:
    return {"ph": ph, "name": name, "pid": 1, "tid": 1, "ts": ts, **more}


def run_of(tmp_path: Path, content, name: str = "trace.json"):
    file = tmp_path / name
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    file.write_bytes(raw)
    import_traces([file], tmp_path / "run")
    return open_run_dir(tmp_path / "run")


def spans(run, columns: str = "name, ts_ns, dur_ns, kind") -> str:
    return text(run.sql(f"SELECT {columns} FROM events ORDER BY id")).partition("\n")[2]


def problems(run) -> dict[str, int]:
    return dict(run.sql("SELECT what, count FROM problems").fetchall())


# A span from begin to end of each way to write one, in microseconds.
FORMS = {
    "list": lambda events: json.dumps(events),
    "list that is not closed": lambda events: json.dumps(events)[:-1],
    "list that ends with a comma": lambda events: json.dumps(events)[:-1] + ",\n",
    "object": lambda events: json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}),
    "object, keys around": lambda events: json.dumps(
        {"otherData": {"a": [{"name": 1}, {"name": 2}]}, "traceEvents": events, "stackFrames": {}}
    ),
    "windows newlines": lambda events: json.dumps(events, indent=1).replace("\n", "\r\n"),
    "byte-order mark": lambda events: "\ufeff" + json.dumps(events),
    "keys in any order": lambda events: json.dumps([dict(reversed(e.items())) for e in events]),
    "no commas": lambda events: "[" + "\n".join(map(json.dumps, events)) + "]",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_way_to_write_the_list_is_the_same_trace(tmp_path, form):
    events = [event("X", "outer", 10, dur=5.5), event("X", "inner", "11.25", dur="1", cat="c")]
    run = run_of(tmp_path, form(events).encode())
    assert spans(run) == "outer 0 5500 annotation\ninner 1250 1000 annotation"
    assert problems(run) == {}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_and_told(tmp_path, encoding):
    run = run_of(tmp_path, json.dumps([event("X", "größe 🎉", 0, dur=1)]).encode(encoding))
    assert spans(run, "name") == "größe 🎉"
    (what,) = problems(run)
    assert what.startswith("the text is in UTF-16")


def test_beginnings_and_ends_nest_on_their_threads(tmp_path):
    run = run_of(tmp_path, [
        event("B", "a", 0), event("B", "b", 1), event("B", "other", 1, tid=2),
        event("E", "", 4), event("E", "other", 5, tid=2), event("E", "a", 9),
    ])  # fmt: skip
    assert (
        spans(run, "name, ts_ns, dur_ns, parent_id")
        == "a 0 9000 -\nother 1000 4000 -\nb 1000 3000 0"
    )
    assert problems(run) == {}


def test_halves_of_spans_are_told(tmp_path):
    run = run_of(tmp_path, [
        event("E", "before", 0), event("B", "open", 1), event("B", "x", 2), event("E", "y", 3),
        event("B", "short", 4), event("E", "short", 7),
    ])  # fmt: skip
    assert spans(run, "name, dur_ns") == "open 6000\nx 1000\nshort 3000"
    assert problems(run) == {
        "an end without its beginning was left out": 1,
        "a span was begun and never ended: it is shown up to the last event of its thread": 1,
        "an end has another name than the beginning that it closes": 1,
    }


def test_instants_are_marks(tmp_path):
    run = run_of(tmp_path, [event("i", "a", 5, s="g"), event("I", "b", 6), event("R", "c", 7)])
    assert spans(run) == "a 0 0 mark\nb 1000 0 mark\nc 2000 0 mark"


def test_counters_with_several_series_and_processes(tmp_path):
    run = run_of(tmp_path, [
        event("X", "x", 0, dur=1),
        event("C", "memory", 1, args={"used": 3, "free": "4.5"}),
        event("C", "power", 2, args={"value": 7}), event("C", "power", 3, id=2, args={"value": 8}),
        event("C", "load", 4, args={"value": 1}), event("C", "load", 4, pid=2, args={"value": 2}),
        event("C", "bad", 5, args={"value": "many"}),
        event("M", "process_name", None, args={"name": "worker"}),
    ])  # fmt: skip
    found = run.sql("SELECT name, ts_ns, value FROM counters ORDER BY name").fetchall()
    assert found == [
        ("load (process 2)", 4000, 2.0), ("load (worker)", 4000, 1.0), ("memory free", 1000, 4.5),
        ("memory used", 1000, 3.0), ("power", 2000, 7.0), ("power 2", 3000, 8.0),
    ]  # fmt: skip
    assert problems(run) == {"a value of a counter is no number and was left out": 1}


def test_names_and_order_of_processes_and_threads(tmp_path):
    run = run_of(tmp_path, [
        event("X", "a", 0, dur=1, tid=5), event("X", "b", 1, dur=1, tid=6),
        event("X", "k", 2, dur=1, pid="/device:GPU:1", tid="stream"),
        event("M", "process_name", 0, args={"name": "python"}),
        event("M", "thread_name", 0, tid=6, args={"name": "loader"}),
        event("M", "thread_sort_index", 0, tid=6, args={"sort_index": -1}),
    ])  # fmt: skip
    assert text(run.sql("SELECT name, device, process, thread FROM tracks ORDER BY id")) == (
        "name device process thread\npython: loader cpu 1 6\npython: thread 5 cpu 1 5\n"
        "/device:GPU:1: stream gpu:1 - -1002\nsteps steps - -"
    )
    assert "k 2000 1000 kernel" in spans(run)
    assert run.sql("SELECT count(*) FROM kernel_args").fetchall() == [(1,)]


ARROWS = [
    event("X", "cause", 0, dur=4), event("X", "inner", 1, dur=2),
    event("X", "effect", 10, dur=5, tid=2), event("X", "late", 20, dur=5, tid=2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("flow", "links"),
    [
        ([event("s", "f", 2, id=1), event("f", "f", 11, id=1, tid=2, bp="e")], ["inner effect f"]),
        ([event("s", "f", 2, id=1), event("f", "f", 10, id=1, tid=2)], ["inner effect f"]),
        # Without bp, an end belongs to the next span.
        ([event("s", "f", 0, id=1), event("f", "f", 11, id=1, tid=2)], ["cause late f"]),
        (
            [event("s", "", 3.5, id="0x1", cat="c"), event("t", "", 12, id=1, tid=2, cat="c"),
             event("f", "", 21, id=1, tid=2, bp="e", cat="c")],
            ["cause effect c", "effect late c"],
        ),
        # Two ends of one arrow both come from its start.
        (
            [event("s", "f", 2, id=1), event("f", "f", 11, id=1, tid=2, bp="e"),
             event("f", "f", 22, id=1, tid=2, bp="e")],
            ["inner effect f", "inner late f"],
        ),
        # A clock that runs behind: the only start is still the start.
        ([event("f", "f", 1, id=1, bp="e"), event("s", "f", 11, id=1, tid=2)], ["effect inner f"]),
    ],
    ids=["enclosing", "at once", "next", "steps", "fan", "skewed"],
)  # fmt: skip
def test_arrows_become_links(tmp_path, flow, links):
    run = run_of(tmp_path, ARROWS + flow)
    found = run.sql(
        "SELECT a.name, b.name, l.kind FROM links l JOIN events a ON a.id = from_id"
        " JOIN events b ON b.id = to_id ORDER BY b.ts_ns"
    )
    assert [" ".join(row) for row in found.fetchall()] == links
    assert problems(run) == {}


def test_arrows_of_the_second_version_and_halves(tmp_path):
    run = run_of(tmp_path, [
        event("X", "a", 0, dur=1, bind_id="0x5", flow_out=True),
        event("X", "b", 5, dur=1, bind_id="0x5", flow_in=True, flow_out=True),
        event("X", "c", 9, dur=1, bind_id="0x5", flow_in=True),
        event("s", "alone", 0, id=9), event("f", "lost", 50, id=3, tid=77),
    ])  # fmt: skip
    pairs = run.sql("SELECT from_id, to_id, kind FROM links ORDER BY 1").fetchall()
    assert pairs == [(0, 1, "flow"), (1, 2, "flow")]
    assert problems(run) == {
        "an arrow has one end only and was left out": 1,
        "an arrow begins or ends where there is no span and was left out": 1,
    }


def test_asynchronous_spans_have_tracks_without_overlap(tmp_path):
    run = run_of(tmp_path, [
        event("b", "one", 0, id=1, cat="io"), event("b", "part", 1, id=1, cat="io"),
        event("b", "two", 2, id=2, cat="io"), event("n", "note", 3, id=2, cat="io"),
        event("e", "part", 4, id=1, cat="io"), event("e", "one", 5, id=1, cat="io"),
        event("e", "two", 6, id=2, cat="io"),
        event("S", "old", 7, id=1), event("T", "old", 8, id=1), event("F", "old", 9, id=1),
        event("b", "open", 7, id2={"local": 4}, cat="io"),
    ])  # fmt: skip
    found = run.sql(
        "SELECT e.name, ts_ns, dur_ns, e.kind, t.name FROM events e"
        " JOIN tracks t ON t.id = track_id ORDER BY ts_ns, e.name"
    ).fetchall()
    assert [row[:4] for row in found] == [
        ("one", 0, 5000, "annotation"), ("part", 1000, 3000, "annotation"),
        ("two", 2000, 4000, "annotation"), ("note", 3000, 0, "mark"),
        ("old", 7000, 2000, "annotation"), ("open", 7000, 2000, "annotation"),
        ("old", 8000, 0, "mark"),
    ]  # fmt: skip
    track = {name: lane for name, _, _, _, lane in found}
    assert track["one"] == track["part"] != track["two"]
    assert list(problems(run).values()) == [1]


def test_what_has_no_place_is_counted(tmp_path):
    run = run_of(tmp_path, [
        event("X", "x", 0, dur=1, args={"file": "a.py"}), event("X", "y", 1, dur=1, args={}),
        event("O", "o", 1), event("N", "n", 1), event("P", "sample", 2), event("c", "clock", 2),
        event("X", "no length", 3), event("X", "negative", 3, dur=-1), event("i", "no time", None),
    ])  # fmt: skip
    assert spans(run, "name") == "x\ny"
    assert problems(run) == {
        "arguments of an event have no place in the tables and were left out": 1,
        **{
            f"events of phase {phase!r} have no place in the tables: left out": 1
            for phase in "ONPc"
        },
        "an event has no time or length and was left out": 2,
        "an event has no time and was left out": 1,
    }


def test_nanoseconds_survive_times_since_1970(tmp_path):
    file = tmp_path / "t.json"
    file.write_text(
        '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1700000000000000.001,"dur":0.004},'
        '{"ph":"X","name":"b","pid":1,"tid":1,"ts":1700000000000000.006,"dur":0.001}]'
    )
    import_traces([file], tmp_path / "run")
    run = open_run_dir(tmp_path / "run")
    assert spans(run, "name, ts_ns, dur_ns") == "a 0 4\nb 5 1"
    assert run.manifest.started_unix_ns == 1_700_000_000_000_000_001


def test_odd_events_among_good_ones(tmp_path):
    good = '{"ph":"X","name":"good","pid":1,"tid":1,"ts":%d,"dur":1}'
    odd = [
        "null", "3", '{"ph":7}', '{"ph":"X","name":"nan","ts":NaN,"dur":1}', '{"ph":"X",,}',
        '{"ph":"X","name":"' + "n" * 9000 + '","ts":5,"dur":1}', '{"ph":"X","ts":[1],"dur":1}',
        '{"ph":"X","name":"\xff\xfe","ts":6,"dur":1}',
        '{"ph":"X","name":"\\ud83d half","ts":7,"dur":1}', "[" * 5000 + "]" * 5000,
    ]  # fmt: skip
    lines = [line for n, each in enumerate(odd) for line in (good % n, each)]
    run = run_of(tmp_path, ("[" + ",\n".join([*lines, good % 99]) + "]").encode("latin1"))
    names = Counter(name[:6] for (name,) in run.sql("SELECT name FROM events").fetchall())
    assert names["good"] == 11 and names["nnnnnn"] == 1 and names["? half"] == 1
    assert len(problems(run)) >= 3


@pytest.mark.parametrize("content", [b"[]", b'{"traceEvents":[]}', b'{"traceEvents":[{"ph":"M"}]}'])
def test_nothing_in_it_is_an_error(tmp_path, content):
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(UnreadableTrace):
        import_traces([tmp_path / "t.json"], tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_json_that_is_no_trace_is_not_recognised(tmp_path):
    for content in ('{"name": "package"}', '[{"ts": 1, "pid": 4}]', '"traceEvents"', "[1, 2]"):
        (tmp_path / "a.json").write_text(content)
        assert chrome.recognise(peek(tmp_path / "a.json")) is None


def test_a_file_cut_anywhere_gives_what_is_before_the_cut(tmp_path):
    events = [event("B" if n % 2 else "X", f"n{n}", n, dur=1, args={"a": [{"ph": 1}, {"ph": 2}]})
              for n in range(12)]  # fmt: skip
    whole = json.dumps({"traceEvents": events, "z": 1}).encode()
    file = tmp_path / "cut.json"
    read = []
    for end in range(1, len(whole)):
        file.write_bytes(whole[:end])
        try:
            read.append(chrome.read(Source("c", [str(file)]), Vocabulary()).spans.rows)
        except UnreadableTrace:
            read.append(0)
    assert read == sorted(read) and read[-1] == 12 and len(set(read)) == 13


def test_random_beginnings_and_ends_agree_with_a_stack(tmp_path):
    rng = random.Random(3)
    file = tmp_path / "t.json"
    for _ in range(40):
        events, stack, expected = [], {0: [], 1: []}, []
        for at in range(rng.randrange(2, 40)):
            thread = rng.randrange(2)
            if stack[thread] and rng.random() < 0.5:
                began, name = stack[thread].pop()
                events.append(event("E", name, at, tid=thread))
                expected.append((began, at - began))
            else:
                stack[thread].append((at, f"n{at}"))
                events.append(event("B", f"n{at}", at, tid=thread))
        if not expected:
            continue
        rng.shuffle(events)
        file.write_text(json.dumps(events))
        trace = chrome.read(Source("c", [str(file)]), Vocabulary())
        (part, *_) = trace.spans
        found = set(zip((part.ts_ns // 1000).tolist(), (part.dur_ns // 1000).tolist(), strict=True))
        assert found >= set(expected)


@pytest.mark.parametrize("size", [300, 5000])
def test_small_batches_give_the_same(tmp_path, size, monkeypatch):
    events = [event("X", f"n{n}", n, dur=1, args={"l": [{"name": 1}, {"name": "},{\"ph\":"}]})
              for n in range(500)]  # fmt: skip
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"traceEvents": events}))
    monkeypatch.setattr(compressed, "_READ_BYTES", 97)
    monkeypatch.setattr(chrome, "EventStream", lambda path, kind: EventStream(path, kind, size))
    words = Vocabulary()
    trace = chrome.read(Source("c", [str(file)]), words)
    assert trace.spans.rows == 500
    assert "not valid" not in str(trace.said.counts) and "ends at" not in str(trace.said.counts)


def test_a_real_trace_keeps_every_span_and_arrow():
    """MegEngine's, and Ascend's: numbers counted in the JSON by another reader."""
    paths = [
        SHARED / "megengine" / "real" / "chrome_timeline.4steps.json",
        *sorted((SHARED / "ascend").glob("**/trace_view.json"))[:2],
    ]
    if not all(path.exists() for path in paths) or len(paths) < 3:
        pytest.skip("shared data absent")
    for path in paths:
        loaded = json.loads(path.read_text())
        events = loaded if isinstance(loaded, list) else loaded["traceEvents"]
        phases = Counter(e["ph"] for e in events)
        trace = chrome.read(Source("c", [str(path)]), Vocabulary())
        assert phases["B"] == phases["E"]
        assert trace.spans.rows == phases["X"] + phases["B"] + phases["i"]
        ends = [(e["cat"], e["name"], str(e["id"])) for e in events if e["ph"] in "tf"]
        begun = {(e["cat"], e["name"], str(e["id"])) for e in events if e["ph"] == "s"}
        joined = sum(1 for key in ends if key in begun)
        assert abs(trace.flows[0].parts.rows - joined) <= 2, path
        values = sum(len(e["args"]) for e in events if e["ph"] == "C")
        assert sum(len(part.ts_ns) for part in trace.counters) == values


TOKENS = (
    b"null", b"NaN", b"-1", b"1e999", b'"x"', b"{}", b"[", b"]", b"}", b",", b'"', b"\\", b"\xff",
    b"\0", b"9" * 30, b'"ph":"X"', b"\\ud800", b'"args":7', b'"id":null', b'"pid":{"a":1}',
)  # fmt: skip


def test_nothing_in_a_file_makes_the_reader_fail(tmp_path):
    rng = random.Random(11)
    good = json.dumps({"traceEvents": [*ARROWS, event("s", "f", 2, id=1), event("B", "b", 1),
        event("b", "a", 1, id=4), event("e", "a", 5, id="0x4"), event("C", "c", 3, args={"x": 1}),
        event("f", "f", 3, id=1), event("M", "process_name", 0, args={"name": "GPU 0"}),
        event("X", "v2", 9, dur=1, bind_id=7, flow_out=True)]}).encode()  # fmt: skip
    file, read = tmp_path / "odd.json", 0
    for _ in range(400):
        text = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(text) + 1)
            text[place : place + rng.randrange(12)] = rng.choice(TOKENS)
        file.write_bytes(text)
        with contextlib.suppress(UnreadableTrace):
            trace = chrome.read(Source("c", [str(file)]), Vocabulary())
            trace.shift(-trace.first_ns())
            read += len(list(tables(trace, 0)))
    assert read > 200
