"""MegEngine's files cut, damaged and made up: what is readable is read, nothing else happens."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strobe.errors import UnreadableTrace
from strobe.ingest.building.tables import tables
from strobe.ingest.formats.megengine import reader as megengine
from strobe.ingest.formats.megengine.document import completed
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.trace.spans import Vocabulary

DATA = Path(__file__).resolve().parents[5] / "shared" / "data" / "megengine"
FILES = ["hand.json", "real/get_profile.infer.json", "real/chrome_timeline.profile_device0.json"]


def read(path: Path):
    """All tables of a file: (events, problems); None if there is nothing to be had."""
    if megengine.recognise(peek(path)) is None:
        return None
    try:
        trace = megengine.read(Source(megengine.NAME, [str(path)]), Vocabulary())
    except UnreadableTrace:
        return None
    trace.shift(-trace.first_ns())
    events = 0
    for part in tables(trace, 0):
        if "events" in part:
            events += len(part["events"]["id"])
            assert (part["events"]["dur_ns"] >= 0).all()
    return events, [what for _, what in trace.said.counts]


@pytest.fixture(params=FILES)
def whole(request):
    if not DATA.exists():
        pytest.skip("MegEngine's shared data absent")
    return (DATA / request.param).read_bytes()


def test_a_file_cut_anywhere_gives_what_comes_before(whole, tmp_path):
    path = tmp_path / "1.chrome_timeline.json"
    path.write_bytes(whole)
    every, _ = read(path)
    seen = []
    for cut in random.Random(3).sample(range(len(whole)), 40):
        path.write_bytes(whole[:cut])
        found = read(path)
        if found is not None:
            assert found[0] <= every and (found[1] or found[0] == every)
            seen.append(found[0])
    assert len(seen) > 30 and max(seen) > every / 2


def test_bytes_changed_anywhere_do_no_harm(whole, tmp_path):
    path = tmp_path / "1.chrome_timeline.json"
    chance = random.Random(5)
    for _ in range(40):
        damaged = bytearray(whole)
        for place in chance.sample(range(len(whole)), 20):
            damaged[place] = chance.randrange(256)
        path.write_bytes(damaged)
        read(path)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from([-1, 2**63, 2**70, 1e300, "nan", "{4,3}", [], {}, [[1]], "\ud800", "\0<b>"]),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip
EVENTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "ph": st.sampled_from(["B", "E", "X", "i", "C", "s", "t", "f", "M", "?", 3]),
            "name": st.one_of(
                st.sampled_from(["Input 3", "Output 4", "OpDispatch", "backward", "step", "conv1",
                                 "StopStep", "thread_name", "HostToDevice", "MUL", "Memcpy",
                                 "gpu0:0_alloc_mem", "train_time_ratio"]), VALUES),
            "cat": st.one_of(st.sampled_from(["Kernel", "KernelLink", "TensorLink"]), VALUES),
            "pid": st.one_of(st.integers(0, 2), VALUES),
            "tid": st.one_of(st.integers(0, 3), VALUES),
            "ts": st.one_of(st.floats(0, 1e5), VALUES),
            "dur": VALUES,
            "id": VALUES,
            "args": st.one_of(
                VALUES,
                st.dictionaries(
                    st.sampled_from(["__id__", "__name__", "shape", "dtype", "nr_elements", "mode",
                                     "value", "name", "bytes", "src_kind", "execution_time"]),
                    VALUES, max_size=4),
            ),
        },
    ),
    max_size=20,
)  # fmt: skip


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(events=EVENTS)
def test_events_of_any_shape(events, tmp_path):
    path = tmp_path / "1.chrome_timeline.json"
    mark = {"name": "OpDispatch", "ph": "B", "pid": 1, "tid": 0, "ts": 1.0}
    path.write_text(json.dumps({"traceEvents": [mark, *events]}))
    assert read(path) is not None


PLACES = st.dictionaries(
    st.sampled_from(['CompNode("gpu0:0" from "xpux:0")', "t", "", "gpu0"]),
    st.one_of(VALUES, st.fixed_dictionaries({"start": VALUES, "kern": VALUES, "end": VALUES}),
              st.just({"start": 0, "kern": 0.5, "end": 1})), max_size=2,
)  # fmt: skip
KEYS = st.sampled_from(["1", "2", "x", ""])


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    operator=st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(
        st.sampled_from(["id", "name", "type", "input"]), VALUES)), max_size=3),
    host=st.one_of(VALUES, st.dictionaries(KEYS, PLACES, max_size=3)),
    device=st.one_of(VALUES, st.dictionaries(KEYS, PLACES, max_size=3)),
    footprint=st.one_of(VALUES, st.dictionaries(KEYS, st.dictionaries(
        st.sampled_from(["computation", "memory", "in_shapes", "out_shapes", "param",
                         "in_layouts"]), VALUES), max_size=3)),
)  # fmt: skip
def test_profiles_of_any_shape(operator, host, device, footprint, tmp_path):
    document = {
        "graph_exec": {"operator": operator, "var": {"1": {"mem_plan": None}}},
        "profiler": {"device": device, "host": host, "opr_footprint": footprint},
    }
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document))
    assert read(path) is not None


@pytest.mark.parametrize("text", [
    '{"profiler":{"device":' + "[" * 100_000, '{"graph_exec":{"operator":' + '{"a":' * 50_000,
    '{"traceEvents":[{"name":"OpDispatch","ph":"B","args":' + "[" * 100_000,
    '{"profiler":{"host":{}}}', '{"graph_exec":{"operator":"no"}}', '{"traceEvents":[',
], ids=range(6))  # fmt: skip
def test_depth_and_emptiness(text, tmp_path):
    path = tmp_path / "1.chrome_timeline.json"
    path.write_text(text)
    read(path)


def test_spans_without_an_end_or_a_begin_are_told(tmp_path):
    path = tmp_path / "1.chrome_timeline.json"
    events = [
        {"name": "OpDispatch", "ph": "E", "pid": 1, "tid": 0, "ts": 1.0},
        {"name": "conv1", "ph": "B", "pid": 1, "tid": 0, "ts": 2.0},
        {"name": "fc", "ph": "B", "pid": 1, "tid": 0, "ts": 3.0},
        {"name": "fc", "ph": "E", "pid": 1, "tid": 0, "ts": 9.0},
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    assert read(path) == (2, [
        "a span has no end: it was taken to end with the last event of its thread",
        "a span has no begin and was left out",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        (b'{"a": {"b": 1, "c": 2', b'{"a": {"b": 1}}'),
        (b'{"a": {"b": 1}, "c": {"d": [1, 2', b'{"a": {"b": 1}, "c": {"d": [1]}}'),
        (b'{"a": "x, y}", "b', b'{"a": "x, y}"}'),
        (b'{"a"', b""),
        (b'{"a": {"b": 1}}', b'{"a": {"b": 1}}'),
    ],
)
def test_cut_json_is_completed(cut, whole):
    assert completed(cut) == whole
