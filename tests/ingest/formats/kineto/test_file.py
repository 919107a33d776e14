import gzip
import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from strobe.ingest.building import nesting
from strobe.ingest.formats import kineto
from strobe.ingest.formats.kineto import read
from tests.ingest.traces import MODELS, one_step, record

SHARED = Path(__file__).parents[5] / "shared" / "data" / "torch"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A trace of every kind of event that a CPU gives, and the profiler that made it."""
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    model = MODELS["cnn"][0]()
    x = torch.randn(MODELS["cnn"][1])
    profiler = record(path, lambda: one_step(model, x), profile_memory=True, with_stack=True)
    return path, profiler


def write(path: Path, events, **header) -> Path:
    path.write_text(json.dumps({**header, "traceEvents": events}))
    return path


def span(name="aten::mm", ts=1.0, dur=2.0, **more):
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1}
    return {**event, "ts": ts, "dur": dur, **more}


def problems(trace) -> list[tuple[str, int]]:
    return [(what, count) for (_, what), count in trace.problems.counts.items()]


def names_of(trace) -> list[str]:
    return [trace.names[code] for code in trace.events.name]


def without_repeats(parent, name):
    """As torch's tables do: an only child called like its parent is the same call, seen twice."""
    parent, kept = parent.copy(), np.ones(len(parent), dtype=bool)
    while True:
        children = np.bincount(parent[kept & (parent >= 0)], minlength=len(parent))
        repeats = kept & (parent >= 0) & (children[parent] == 1) & (name[parent] == name)
        if not repeats.any():
            return parent, kept
        row = np.flatnonzero(repeats)[0]
        kept[row] = False
        parent[parent == row] = parent[row]


def test_agrees_with_key_averages_to_the_nanosecond(tmp_path):
    path = tmp_path / "trace.json"
    model, x = MODELS["transformer"][0](), torch.randn(MODELS["transformer"][1])
    profiler = record(path, lambda: one_step(model, x))
    trace = read(path)
    events = trace.events
    parent = nesting.parents(events.thread, events.ts_ns, events.dur_ns)
    parent, kept = without_repeats(parent, events.name)
    has_parent = kept & (parent >= 0)
    inside = np.bincount(parent[has_parent], events.dur_ns[has_parent], len(parent))
    totals, selves, counts = Counter(), Counter(), Counter()
    for row in np.flatnonzero(kept):
        name = trace.names[events.name[row]]
        counts[name] += 1
        totals[name] += int(events.dur_ns[row])
        selves[name] += int(events.dur_ns[row] - inside[row])
    theirs = profiler.key_averages()
    assert len(theirs) > 20
    for row in theirs:
        assert row.count == counts[row.key], row.key
        assert round(row.cpu_time_total * 1000) == totals[row.key], row.key
        assert round(row.self_cpu_time_total * 1000) == selves[row.key], row.key


def test_reads_every_event_of_every_category(recorded):
    path, _ = recorded
    trace = read(path)
    text = json.loads(path.read_text())["traceEvents"]
    wanted = Counter(e["cat"] for e in text if e["ph"] == "X" and e["cat"] != "Trace")
    found = Counter(trace.categories[code] for code in trace.events.category)
    assert found == wanted and wanted["python_function"] and wanted["cpu_op"]
    memory = [e for e in text if e["name"] == "[memory]"]
    assert trace.memory.address.tolist() == [e["args"]["Addr"] for e in memory]
    assert trace.memory.bytes.tolist() == [e["args"]["Bytes"] for e in memory]
    assert trace.problems.counts == {}


def test_keeps_the_arguments_as_they_were_written(recorded):
    path, _ = recorded
    trace = read(path)
    place = names_of(trace).index("aten::convolution")
    args = trace.events.args
    assert json.loads(trace.texts[args["dims"][place]])[:3] == [[2, 4, 17, 17], [8, 2, 3, 3], [8]]
    assert json.loads(trace.texts[args["concrete"][place]])[3] == "[2, 2]"
    assert json.loads(trace.texts[args["dtypes"][place]])[0] == "float"
    assert args["sequence"][place] >= 0 and "correlation" not in args


def test_small_chunks_give_the_same_columns(recorded, tmp_path):
    path, _ = recorded
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    whole = read(path)
    for other in (read(path, chunk_bytes=20_000), read(packed, chunk_bytes=70_000)):
        assert names_of(other) == names_of(whole)
        assert other.events.ts_ns.tolist() == whole.events.ts_ns.tolist()
        assert other.memory.ts_ns.tolist() == whole.memory.ts_ns.tolist()
        assert other.thread_names == whole.thread_names
        assert other.problems.counts == {}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_file_cut_anywhere_keeps_every_whole_event(tmp_path, packed):
    events = [span(f"op {i}", 10.5 * i, 3.25, args={"External id": i}) for i in range(60)]
    text = json.dumps({"baseTimeNanoseconds": 5, "traceEvents": events}, indent=1).encode()
    ends = [text.index(f'"External id": {i}\n'.encode()) for i in range(60)]
    ends = [text.index(b"}", text.index(b"}", end) + 1) + 1 for end in ends]
    data = gzip.compress(text) if packed else text
    rng = random.Random(7)
    path = tmp_path / ("cut.json.gz" if packed else "cut.json")
    for size in [0, 1, 2, *(rng.randrange(len(data)) for _ in range(200))]:
        path.write_bytes(data[:size])
        trace = read(path, chunk_bytes=900)
        there = size if not packed else _inflated_bytes(data[:size])
        assert names_of(trace) == [f"op {i}" for i, end in enumerate(ends) if end <= there], size
        assert problems(trace), size


def _inflated_bytes(data: bytes) -> int:
    import zlib

    inflate = zlib.decompressobj(31)
    return len(inflate.decompress(data) + inflate.flush())


def test_a_real_file_cut_anywhere_never_raises(recorded, tmp_path):
    data = recorded[0].read_bytes()
    whole = len(read(recorded[0]).events.ts_ns)
    rng = random.Random(3)
    counts = []
    for size in sorted(rng.randrange(len(data)) for _ in range(40)):
        path = tmp_path / "cut.json"
        path.write_bytes(data[:size])
        trace = read(path)
        counts.append(len(trace.events.ts_ns))
        assert problems(trace)
    assert counts == sorted(counts) and counts[-1] > whole // 2


def test_a_cut_file_says_where_it_ends_and_what_is_lost(tmp_path):
    path = write(tmp_path / "cut.json", [span("a"), span("b")])
    text = path.read_text()
    path.write_text(text[: text.index('"b"') + 3])
    trace = read(path)
    assert names_of(trace) == ["a"]
    assert problems(trace) == [(
        "the file ends at byte 143 in the middle of an event:"
        " its last 40 bytes are lost, every event before them was kept", 1,
    )]  # fmt: skip


def test_damaged_gzip_keeps_what_came_before(tmp_path):
    events = [span(f"op {random.Random(i).random()}") for i in range(4000)]
    path = write(tmp_path / "trace.json", events)
    data = bytearray(gzip.compress(path.read_bytes()))
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    trace = read(path)
    assert 500 < len(trace.events.ts_ns) < 3500
    assert any("damaged" in what for what, _ in problems(trace))


def test_an_event_that_is_not_json_is_left_out_and_counted(tmp_path):
    path = write(tmp_path / "quote.json", [span("a"), span("BROKEN"), span("c"), span("BROKEN")])
    path.write_text(path.read_text().replace("BROKEN", 'say "hello" twice'))
    trace = read(path)
    assert names_of(trace) == ["a", "c"]
    assert problems(trace) == [("an event is not valid JSON and was left out", 2)]


def test_control_characters_broken_utf8_and_numbers_as_text_are_read(tmp_path):
    path = write(tmp_path / "odd.json", [span("TAB"), span("BYTE"), span("c"), span("d")])
    data = path.read_bytes().replace(b"TAB", b"a\tb").replace(b"BYTE", b"\xff\xfe")
    path.write_bytes(data.replace(b'"name": "d", "pid": 1', b'"name": "d", "ts": "7.5", "pid": 1'))
    assert names_of(read(path)) == ["a\tb", "\ufffd\ufffd", "c", "d"]


def test_an_event_without_length_is_left_out_and_counted(tmp_path):
    events = [span("a"), span("b", dur=None), span("c", dur=-1), span("d", ts=1e300)]
    trace = read(write(tmp_path / "no-length.json", events))
    assert names_of(trace) == ["a"]
    assert problems(trace) == [("an event has no time or length and was left out", 3)]


def test_nanoseconds_survive_with_and_without_a_base_time(tmp_path):
    based = write(
        tmp_path / "based.json", [span(ts=3916089033576.681, dur=0.003)],
        baseTimeNanoseconds=1790857026000000000,
    )  # fmt: skip
    assert read(based).events.ts_ns.tolist() == [1790857026000000000 + 3916089033576681]
    assert read(based).events.dur_ns.tolist() == [3]
    epoch = tmp_path / "epoch.json"
    text = json.dumps({"traceEvents": [span(ts="TS"), span(ts=1700000000000000)]})
    epoch.write_text(text.replace('"TS"', "1700000000000000.001"))
    assert read(epoch).events.ts_ns.tolist() == [1700000000000000001, 1700000000000000000]


@pytest.mark.parametrize(
    "times",
    [
        ["1712195495526927.636", "1712195999999999.999", "1712195000000000.001"],
        ["1712195999999999.999", "1712196000000000.001"],  # other first digits
        ["1712195495526927.636", "1712195.5"],  # the same ones, of a shorter number
        ["1712195495526927.636", "1712195495526928", "12.5"],
    ],
)
def test_times_since_1970_keep_their_nanoseconds_whatever_digits_they_share(tmp_path, times):
    lines = [json.dumps(span(ts=0)).replace('"ts": 0', f'"ts": {time}') for time in times]
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{", ".join(lines)}]}}')
    by_hand = [int(Decimal(time) * 1000) for time in times]
    assert read(path).events.ts_ns.tolist() == by_hand


def test_the_base_time_may_stand_behind_the_events(tmp_path):
    path = tmp_path / "behind.json"
    path.write_text(f'{{"traceEvents": [{json.dumps(span())}], "baseTimeNanoseconds": 5000}}')
    assert read(path).events.ts_ns.tolist() == [6000]


def test_lists_text_ids_and_other_key_orders_are_read(tmp_path):
    path = tmp_path / "list.json"
    turned = dict(reversed(span("b", pid="Spans", tid="").items()))
    other = dict(reversed(span("c").items()))
    path.write_text(json.dumps([turned, {"ph": "M", "name": "x"}, other]))
    trace = read(path)
    assert names_of(trace) == ["b", "c"]
    assert trace.threads == [("Spans", ""), (1, 1)]
    assert trace.problems.counts == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "hello", '{"traceEvents": []}', "[[1, 2]]", "\0" * 99]
)
def test_what_is_no_trace_gives_no_events(tmp_path, text):
    path = tmp_path / "file.json"
    path.write_text(text)
    assert len(read(path).events.ts_ns) == 0


def shared_files():
    return sorted(SHARED.rglob("*.gz")) if SHARED.exists() else [None]


@pytest.mark.parametrize("path", shared_files(), ids=lambda path: path.name if path else "none")
def test_traces_of_others_load(path):
    if path is None:
        pytest.skip(f"{SHARED} is not here")
    if path.stat().st_size > 1_500_000:
        pytest.skip("takes seconds")
    trace = read(path)
    if path.name == "memory_timeline.raw.gz":
        assert problems(trace) == [("the entries of its list are not trace events", 1)]
        return
    text = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    wanted = sum(e["ph"] == "X" and e.get("cat") != "Trace" for e in text)
    assert len(trace.events.ts_ns) == wanted > 0
    assert trace.problems.counts == {}


def test_shapes_of_columns_fit(recorded):
    events = read(recorded[0]).events
    assert {len(column) for column in events.args.values()} == {len(events.ts_ns)}


def test_pieces_are_the_whole_and_a_date_at_the_end_dates_them_all(tmp_path):
    path = tmp_path / "trace.json"
    events = [span(f"op {ts % 7}", ts=float(ts), args={"External id": ts}) for ts in range(20_000)]
    path.write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": 10**18}))
    pieces = list(kineto.pieces(path, events_each=3000, chunk_bytes=100_000))
    assert len(pieces) > 3 and pieces[-1].late_base_ns == 10**18
    whole = read(path)
    assert whole.events.ts_ns[0] == 10**18
    names = [piece.names[code] for piece in pieces for code in piece.events.name]
    assert names == names_of(whole) == [event["name"] for event in events]
    times = np.concatenate([piece.events.ts_ns for piece in pieces])
    assert np.array_equal(times + 10**18, whole.events.ts_ns)
    assert whole.events.args["external"].tolist() == list(range(20_000))
