"""The events of a MegEngine timeline: edges of spans, instants, counters, arrows, names.

There may be more of them than memory holds: they are kept in spools, and told of here is what has
to be known of all before the first of them is understood.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from strobe.ingest.formats.json_chunks import EventFile
from strobe.ingest.trace import span_spool
from strobe.ingest.trace.codes import Array, Codes, in_order_once
from strobe.ingest.trace.span_spool import Spool
from strobe.ingest.trace.spans import Spans
from strobe.ingest.trace.trace import Counters, Samples

BEGIN, END, COMPLETE, INSTANT, LEAVES, COMES_IN = range(6)  # the last two are ends of arrows
_PHASES = {"B": BEGIN, "E": END, "X": COMPLETE, "i": INSTANT, "I": INSTANT}
_ARROWS = {"s": LEAVES, "f": COMES_IN}
# These join a call of the driver and its kernel; operators, kernels and tensors have numbers.
_LAUNCHES = ("KernelLink", "CUPTILink")
_END_OF_TIME_US = 9e12
_NO_ARGS = msgspec.Raw(b"{}")
# Different for each call, or of no use as a parameter.
_NOT_A_PARAMETER = re.compile(
    rb'"(?:__device__|__id__|__name__|(?:python|transformation)_backtrace)"\s*:\s*'
    rb'(?:"(?:[^"\\]|\\.)*"|-?\d+)\s*(?:,\s*|(?=\}))'
)
_EVENT_GAP = re.compile(rb'(?<=\})\s*,\s*(?=\{\s*"(?:args|bp|cat|dur|id|name|ph|pid)"\s*:)')
_ODD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
TEXTS = ("shape", "dtype", "device", "tensor", "mode", "parameters", "ways")
NUMBERS = ("op", "elements", "bytes", "has_run")
# What threads are, by what happens on them.
_DISPATCH, _ON_DEVICES = ("OpDispatch",), ("HostToDevice", "Memset")


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int = 0
    tid: int = 0
    ts: float = float("nan")
    dur: float = 0
    id: int = -1
    args: msgspec.Raw = _NO_ARGS


class Args(msgspec.Struct, gc=False):
    op: int = msgspec.field(name="__id__", default=-1)
    shape: str = ""
    dtype: str = ""
    device: str = ""
    tensor: str = msgspec.field(name="name", default="")
    mode: str = ""
    elements: float = msgspec.field(name="nr_elements", default=-1)
    bytes: int | str = -1
    source: str = msgspec.field(name="src_kind", default="")
    target: str = msgspec.field(name="dst_kind", default="")
    execution_time: float | None = None


class CounterArgs(msgspec.Struct, gc=False):
    value: float = float("nan")


class NameArgs(msgspec.Struct, gc=False):
    name: str = ""


def wide_spool() -> Spool:
    """For spans with many arguments, of which slices take the more memory."""
    return Spool(span_spool.SLICE_ROWS // 2)


@dataclass
class Seen:
    """Numbers of threads, and of texts, that tell what threads are."""

    dispatches: set[int] = field(default_factory=set)
    works: set[int] = field(default_factory=set)  # kernels or copies run there
    devices: set[int] = field(default_factory=set)  # of texts: where tensors are
    last_ns: dict[int, int] = field(default_factory=dict)  # the last edge of a thread


@dataclass
class Events:
    """Times in nanoseconds since the profiler began. Text is numbers into the lists beside."""

    # Tracks are threads. Edges have TEXTS and NUMBERS, the `phase`, and their `place` in the file.
    edges: Spool = field(default_factory=wide_spool)  # and ends of arrows, with their `arrow`
    instants: Spool = field(default_factory=Spool)
    counters: Counters = field(default_factory=Counters)  # `name` as that of spans
    names: Codes[str] = field(default_factory=Codes)
    texts: Codes[str] = field(default_factory=Codes)
    threads: Codes[tuple[int, int]] = field(default_factory=Codes)  # pid, tid
    thread_names: dict[tuple[int, int], str] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)

    def __post_init__(self) -> None:
        self.texts[""]  # the number 0 is no text

    def code(self, name: str) -> int:
        return self.names.get(name, -1)

    def last_ns(self) -> Array:
        """Of each thread."""
        found = np.full(max(1, len(self.threads)), np.iinfo(np.int64).min)
        found[list(self.seen.last_ns)] = list(self.seen.last_ns.values())
        return found


@dataclass
class Reader:
    """Of one file; of a merged one the events of one process."""

    path: Path
    pid: int | None = None
    found: Events = field(default_factory=Events)

    def __post_init__(self) -> None:
        self.file = EventFile(self.path)
        self.names, self.texts, self.threads = (
            self.found.names, self.found.texts, self.found.threads
        )  # fmt: skip

    def read(self) -> Events:
        for chunk in self.file.chunks():
            events = self._events(chunk)
            self._take(events if self.pid is None else [e for e in events if e.pid == self.pid])
        return self.found

    def _events(self, chunk: bytes) -> list[Event]:
        try:
            return _EVENTS.decode(b"[" + chunk + b"]")
        except _ODD:
            return list(self._one_by_one(chunk))

    def _one_by_one(self, chunk: bytes) -> Iterator[Event]:
        for piece in _EVENT_GAP.split(chunk):
            try:
                yield _EVENT.decode(piece)
            except _ODD:
                self.file.say("an event is not as MegEngine writes it and was left out")

    def _take(self, events: list[Event]) -> None:
        timed = [e for e in events if e.ph in _TIMED]
        known = [e for e in timed if abs(e.ts) < _END_OF_TIME_US and 0 <= e.dur < _END_OF_TIME_US]
        self.file.say("an event has no time and was left out", len(timed) - len(known))
        spans = [e for e in known if e.ph in _PHASES]
        if spans:
            self._take_spans(spans)
        counters = [e for e in known if e.ph == "C"]
        if counters:
            self.found.counters.append(self._samples(counters))
        arrows = [e for e in known if e.ph in _ARROWS and e.cat in _LAUNCHES]
        if arrows:
            self.found.edges.append(self._arrow_ends(arrows))
        for event in events:
            if event.ph == "M" and event.name == "thread_name":
                (args,) = _decoded([event.args], NameArgs)
                self.found.thread_names[event.pid, event.tid] = args.name.strip()

    def _take_spans(self, events: list[Event]) -> None:
        count = len(events)
        phase = np.array([_PHASES[e.ph] for e in events], dtype=np.int8)
        spans = Spans(
            _nanoseconds([e.ts for e in events]), _nanoseconds([e.dur for e in events]), phase,
            self.names.of((_without_number(e.name) for e in events), count),
            self.threads.of(map(_THREAD, events), count), self._arguments(events),
        )  # fmt: skip
        self._look(spans)
        is_edge = phase <= END
        instants, edges = (spans.take(np.flatnonzero(rows)) for rows in (~is_edge, is_edge))
        instants.args = {}
        self.found.instants.append(instants)
        edges.dur_ns = np.zeros(len(edges), dtype=np.int64)  # of equal times the order of the file
        edges.args |= {"phase": edges.kind, "place": self._places(len(edges))}
        for thread in in_order_once(edges.track).tolist():
            last = int(edges.ts_ns[edges.track == thread].max())
            known = self.found.seen.last_ns.get(thread, last)
            self.found.seen.last_ns[thread] = max(known, last)
        self.found.edges.append(edges)

    def _places(self, count: int) -> Array:
        return self.found.edges.rows + np.arange(count)

    def _look(self, spans: Spans) -> None:
        """Threads with kernels or copies, by their category or by what CUPTI says of them."""
        seen, args = self.found.seen, spans.args
        is_work = (args["is_kernel"] > 0) | (args["has_run"] > 0) | (args["ways"] > 0)
        is_work |= self._is_named(spans, _ON_DEVICES)
        seen.works.update(spans.track[is_work].tolist())
        seen.dispatches.update(spans.track[self._is_named(spans, _DISPATCH)].tolist())
        seen.devices.update(in_order_once(args["device"]).tolist())

    def _is_named(self, spans: Spans, names: tuple[str, ...]) -> Array:
        return np.isin(spans.name, [self.found.code(name) for name in names])

    def _arguments(self, events: list[Event]) -> dict[str, Array]:
        count = len(events)
        columns = {"is_kernel": np.array([e.cat == "Kernel" for e in events], dtype=np.int8)}
        columns |= {name: np.full(count, -1.0 if name == "elements" else -1) for name in NUMBERS}
        columns |= {name: np.zeros(count, dtype=np.int32) for name in TEXTS}
        # Most begins have none.
        rows = [row for row, e in enumerate(events) if e.args is not _NO_ARGS]
        for name, column in self._told([events[row] for row in rows]).items():
            columns[name][rows] = column
        return columns

    def _told(self, events: list[Event]) -> dict[str, Array]:
        """What the arguments of events say."""
        args = _decoded([e.args for e in events], Args)
        count = len(args)
        columns = {
            "op": _integers([a.op for a in args]),
            "elements": np.array([a.elements for a in args], dtype=np.float64),
            "bytes": np.array([_whole(a.bytes) for a in args], dtype=np.int64),
            "has_run": np.array([a.execution_time is not None for a in args], dtype=np.int64),
            "ways": self.texts.of((_way(a) for a in args), count),
        }
        for name in ("shape", "dtype", "device", "tensor", "mode"):
            columns[name] = self.texts.of(map(attrgetter(name), args), count)
        columns["parameters"] = self.texts.of(
            (self._parameters(e, a) for e, a in zip(events, args, strict=True)), count
        )
        return columns

    def _parameters(self, event: Event, args: Args) -> str:
        """Of an operator where it executes; its dispatch and its kernel repeat them."""
        if args.op < 0 or event.cat or event.name == "OpDispatch":
            return ""
        text = _NOT_A_PARAMETER.sub(b"", bytes(event.args)).decode("utf-8", "replace")
        return text.replace(",}", "}") if len(text) > len("{}") else ""

    def _samples(self, events: list[Event]) -> Samples:
        args = _decoded([e.args for e in events], CounterArgs)
        return Samples(
            _nanoseconds([e.ts for e in events]),
            self.names.of((e.name for e in events), len(events)),
            np.array([a.value for a in args], dtype=np.float64),
        )

    def _arrow_ends(self, events: list[Event]) -> Spans:
        nothing = np.zeros(len(events), dtype=np.int32)
        args = {
            "phase": np.array([_ARROWS[e.ph] for e in events], dtype=np.int8),
            "place": self._places(len(events)), "arrow": _integers([e.id for e in events]),
        }  # fmt: skip
        threads = self.threads.of(map(_THREAD, events), len(events))
        ts_ns = _nanoseconds([e.ts for e in events])
        return Spans(ts_ns, nothing.astype(np.int64), nothing, nothing, threads, args)


_TIMED = {*_PHASES, *_ARROWS, "C"}
_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_THREAD = attrgetter("pid", "tid")
# "Input 3706": the number is a tensor's, and there are as many as calls.
_NUMBERED = frozenset(
    ("Input", "Output", "Put", "Del", "Drop", "ReGen", "RecFree", "GetValue", "UnknownCommand")
)


def _without_number(name: str) -> str:
    if not name[-1:].isdecimal():
        return name
    word = name.split(" ", 1)[0]
    return word if word in _NUMBERED else name


def _decoded(raws: list[msgspec.Raw], kind: Any) -> list[Any]:
    """The arguments of many events at once; of each alone if one of them is odd."""
    try:
        return list(msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=list[kind]))
    except _ODD:
        return [_lenient(bytes(raw), kind) for raw in raws]


def _lenient(raw: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind, strict=False)
    except _ODD:
        return kind()


def _nanoseconds(microseconds: list[float]) -> Array:
    return np.rint(np.array(microseconds, dtype=np.float64) * 1000).astype(np.int64)


def _integers(values: list[int]) -> Array:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array([v if abs(v) < 2**63 else -1 for v in values], dtype=np.int64)


def _whole(value: int | str) -> int:
    if value == -1:
        return -1
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 19 else -1


def _way(args: Args) -> str:
    """Of a copy: "pageable host to device", by CUPTI's names of the memories."""
    if not (args.source and args.target):
        return ""
    kinds = [kind.rsplit("_", 1)[-1].lower() for kind in (args.source, args.target)]
    sides = ["host" if kind in ("pageable", "pinned") else "device" for kind in kinds]
    host = next((kind for kind in kinds if kind in ("pageable", "pinned")), "")
    return f"{sides[0]} to {sides[1]} {host}".strip()
