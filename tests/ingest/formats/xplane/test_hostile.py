"""Profiles that are cut, damaged or made to hurt: what is readable is read, the rest is told."""

import os
import random
import struct
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strobe.errors import UnreadableTrace
from strobe.ingest.building.tables import tables
from strobe.ingest.formats.xplane import reader as xplane
from strobe.ingest.formats.xplane.wire import header
from strobe.ingest.importing.sources import Source, peek
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace
from tests.ingest.formats.xplane.test_reader import NEW, host, steps_of_two, tpu, trained
from tests.ingest.formats.xplane.xspace import (
    PlaneWriter,
    instruction,
    message,
    metadata_plane,
    program,
    put,
    space,
    task_plane,
    varint,
)

SMALL = space(trained(), tpu(), host(*steps_of_two()), task_plane())
EXAMPLES = int(os.environ.get("STROBE_FUZZ_EXAMPLES", "60"))


def read(data: bytes, *, into_tables: bool = True) -> Trace | None:
    """Into a trace, and on into tables; None if there was nothing in it."""
    with tempfile.NamedTemporaryFile(suffix=".xplane.pb") as file:
        file.write(data)
        file.flush()
        xplane.recognise(peek(Path(file.name)))
        try:
            trace = xplane.read(Source("xplane", [file.name]), Vocabulary())
        except UnreadableTrace:
            return None
    trace.rows = trace.spans.rows  # type: ignore[attr-defined]
    for part in tables(trace, 0) if into_tables else ():
        assert part.keys() & {"events", "counters", "problems"}
    return trace


def told(trace: Trace | None) -> str:
    return "" if trace is None else "; ".join(what for _, what in trace.said.counts)


@pytest.mark.slow
def test_cut_at_every_byte():
    """A cut anywhere but between two planes is told; what came before it stays."""
    drawn = [trained(), host(*steps_of_two()), task_plane()]
    data = space(*drawn)
    whole = read(data)
    assert whole is not None and not whole.said.counts
    planes = {0}
    for plane in drawn:
        planes.add(max(planes) + len(put(1, plane.bytes())))
    before = 0
    for cut in range(len(data)):
        trace = read(data[:cut], into_tables=False)
        assert cut in planes or trace is None or told(trace), cut
        rows = 0 if trace is None else trace.rows
        assert rows >= before, cut
        before = rows
    assert before == whole.rows


def test_events_whose_names_are_lost_are_called_by_their_numbers():
    plane = host(*steps_of_two())
    whole = put(1, plane.bytes())
    trace = read(whole[: whole.index(b"dot.1")])  # names stand behind the events
    assert trace is not None and trace.rows == 10
    assert "the name of an event is missing: it is called by its number" in told(trace)


def event_plane(*events: bytes) -> bytes:
    plane = PlaneWriter("/host:CPU")
    good = plane.event("good", 5, 5)
    plane.line(1, "python", 0, [good, *events, good])
    return space(plane, task_plane())


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (b"\x08\x01\x10\x05\x1b", "an event is damaged and was left out"),
        (b"\x08\x01\x10\x05\x22\x7f", "an event is damaged and was left out"),
        (b"\x08" + b"\xff" * 11, "an event is damaged and was left out"),
        (message((1, 1), (5, 3)), "a sum of events without their times was left out"),
        (message((1, 1), (2, 5), (3, -5)), "an event has an impossible time and was left out"),
        (message((1, 1), (2, 2**62), (3, 1)), "an event has an impossible time and was left out"),
        (message((1, 1), (2, 5), (4, b"\x08\x01\x3b")), ""),
        (message((1, 99), (2, 5)), "the name of an event is missing: it is called by its number"),
        (message((1, -1), (2, 5)), "the name of an event is missing: it is called by its number"),
        (message((1, 1), (2, 5), (4, b"\x08\xff\xff\xff\xff\x7f\x20\x01")), ""),
        (message((1, 1.5), (2, b"text"), (3, b"")), "the name of an event is missing"),
        (b"", "the name of an event is missing"),
    ],
)
def test_one_odd_event_does_not_take_others_with_it(event, what):
    trace = read(event_plane(event))
    assert trace is not None and trace.rows >= 2
    assert what in told(trace)


def test_a_line_that_breaks_keeps_what_came_before():
    data = bytearray(event_plane(*[message((1, 1), (2, at)) for at in range(100)]))
    place = data.index(bytes([0x22, 4, 8, 1, 16, 50]))
    data[place + 1] = 0x7F  # a length that leads astray
    trace = read(bytes(data))
    assert trace is not None and 51 <= trace.rows < 102


@pytest.mark.parametrize("length", [2**31, 2**40, 2**63, 2**64 - 1])
def test_lengths_that_lie(length):
    for data in (
        b"\x0a" + varint(length) + SMALL,
        put(1, b"\x12" + varint(length) + b"/host:CPU"),
        put(1, message((2, "/host:CPU")) + b"\x1a" + varint(length) + b"\x22\x02\x08\x01"),
        put(1, message((2, "/host:CPU")) + b"\x22" + varint(length) + b"\x12\x02"),
    ):
        started = time.perf_counter()
        read(data)
        assert time.perf_counter() - started < 5


def test_more_lines_than_there_can_be_threads(monkeypatch):
    monkeypatch.setattr(xplane, "_MOST_LINES", 3)
    planes = [PlaneWriter(f"/device:TPU:{number}") for number in range(3)]
    for number, plane in enumerate(planes):
        for id in range(2):
            plane.line(id, f"line {number}", 0, [plane.event("work", 1, 1)])
    trace = read(space(*planes, task_plane()))
    assert trace is not None and trace.rows == 3
    assert list(trace.said.counts.values()) == [3]


def test_one_huge_event(tmp_path):
    """Larger than what is read at once."""
    plane = PlaneWriter("/host:CPU")
    huge = plane.event("huge", 7, 1, source="x" * (6 << 20))
    good = plane.event("good", 5, 5)
    plane.line(1, "python", 0, [good, huge, good])
    trace = read(space(plane, task_plane()))
    assert trace is not None and trace.rows == 3 and not trace.said.counts


def test_programs_that_never_end():
    """A fusion of itself, a shape of shapes, a frame around itself, an op name of brackets."""
    shape = b""
    for _ in range(3000):
        shape = put(4, shape)
    made = [
        instruction(n, f"op.{n}", "fusion", "jit(f)/" + "(" * 3000, (2,), (n,), (38, varint(1)))
        for n in range(30)
    ]
    nested = message((1, "nested"), (2, "add"), (3, shape), (35, 99))
    frames = message((1, "a.py"), (3, message((1, 1), (3, 5))), (4, message((1, 9), (2, 1))))
    framed = message((1, "framed"), (2, "add"), (7, message((15, 1))))
    proto = program("jit_step", *made, nested, framed)
    whole = message((1, proto[2:] + put(17, frames)))
    plane = PlaneWriter("/host:CPU")
    names = [*(f"op.{n}" for n in range(30)), "nested", "framed"]
    drawn = [plane.event(name, 5, 5, hlo_op=name, hlo_module="jit_step") for name in names]
    plane.line(1, "python", 0, drawn)
    started = time.perf_counter()
    for one in (proto, whole):
        trace = read(space(metadata_plane(("jit_step", 3, one)), plane))
        assert trace is not None and trace.rows == len(names)
    assert time.perf_counter() - started < 20


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes changed, cut out, doubled or put in, and perhaps the end missing."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        how = draw(st.integers(0, 4))
        if how == 0:
            data[at : at + 1] = bytes([draw(st.integers(0, 255))])
        elif how == 1:
            del data[at : at + draw(st.integers(1, 40))]
        elif how == 2:
            data[at:at] = data[at : at + draw(st.integers(1, 400))]
        elif how == 3:
            data[at:at] = draw(st.binary(min_size=1, max_size=12))
        else:
            data[at : at + 8] = struct.pack("<Q", draw(st.sampled_from([0, 2**63, 2**64 - 1])))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(SMALL))
def test_any_damage_to_a_drawn_profile(data):
    read(data)


@pytest.fixture(scope="module")
def real() -> bytes:
    if not NEW.exists():
        pytest.skip("profiles of JAX on an MI300: shared data absent")
    return NEW.read_bytes()


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_damage_to_a_real_profile(real, data):
    """Past the programs, where every byte belongs to events and their names."""
    *_, after = header(real, 0)
    read(data.draw(damaged(real[after:])))


def test_many_cuts_of_a_real_profile(real):
    rng = random.Random(5)
    for _ in range(max(8, EXAMPLES // 6)):
        read(real[: rng.randrange(len(real))])
