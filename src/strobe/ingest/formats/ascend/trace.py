"""trace_view.json (torch_npu, MindSpore) and msprof_*.json (CANN), as columns.

Reads complete events (X), counters (C), the names of processes and threads (M), and of the arrows
(s, f) those from an operator of the framework to its work on the device. The other arrows say
what connection numbers and sequence numbers say as well. Call stacks are not kept.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.ascend.numbers import NEVER, lengths, moments
from strobe.ingest.formats.chrome.chunks import BATCH_BYTES, EventStream
from strobe.ingest.trace.codes import Array, Codes, narrow
from strobe.ingest.trace.column_spool import Pile
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.trace import Counters, Samples

TO_DEVICE = "async_npu"  # the category of arrows from operator to device
_NOTHING = msgspec.Raw(b"")
_TEXTS = ("dims", "dtypes", "task_type", "data_type", "algorithm", "operation")
_NUMBERS = ("connection", "sequence", "forward_thread", "count", "size")
_COLUMNS = ("ts_ns", "dur_ns", "name", "category", "thread", *_NUMBERS, *_TEXTS)
_LARGEST = 2**62
_HELD_ROWS = 20_000
_UNIT = re.compile(r"\((.+)\)$")

Number = int | float | str | None


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str | None = ""
    cat: str | None = ""
    pid: int | float | str | None = 0
    tid: int | float | str | None = 0
    ts: msgspec.Raw = _NOTHING  # a number, or text
    dur: msgspec.Raw = _NOTHING
    id: int | float | str | None = None
    args: msgspec.Raw = _NOTHING


class Args(msgspec.Struct, gc=False):
    connection: Number = msgspec.field(name="connection_id", default=None)
    sequence: Number = msgspec.field(name="Sequence number", default=None)
    forward_thread: Number = msgspec.field(name="Fwd thread id", default=None)
    count: Number = None
    dims: str | None = msgspec.field(name="Input Dims", default=None)
    dtypes: str | None = msgspec.field(name="Input type", default=None)
    task_type: str | None = msgspec.field(name="Task Type", default=None)
    data_type: str | None = None
    algorithm: str | None = msgspec.field(name="alg_type", default=None)
    size: Number = msgspec.field(name="size(B)", default=None)  # of a copy
    operation: str | None = None  # of a copy: host to device


class NameArgs(msgspec.Struct, gc=False):
    name: str = ""


class Arrows(NamedTuple):
    """Both ends of arrows; `thread` into Timeline.threads."""

    ts_ns: Array
    thread: Array
    number: Array  # ends of one arrow share it
    is_start: Array


@dataclass
class Timeline:
    """One file. Texts are numbers into the lists beside them; a number is -1 where unknown."""

    events: dict[str, Array]
    names: list[str]
    categories: list[str]
    texts: list[str]
    threads: list[tuple[Any, Any]]  # pid, tid
    process_names: dict[Any, str]
    thread_names: dict[tuple[Any, Any], str]
    counters: Counters  # `name` into:
    counter_names: list[tuple[Any, str]]  # pid, name with its unit
    arrows: Arrows


def read(paths: list[Path], said: Problems, batch_bytes: int = BATCH_BYTES) -> Timeline:
    """Everything readable of a timeline, which may lie in several files."""
    reader = _Reader()
    for path in paths:
        stream = EventStream(path, Event, batch_bytes)
        reader.say = stream.say
        try:
            for batch in stream.batches():
                reader.take(batch)
        except UnreadableTrace as error:
            stream.say(error.what)
        said.update(stream.problems)
    return reader.finish()


@dataclass
class _Reader:
    say: Callable[[str, int], None] = lambda what, count: None
    names: Codes[str] = field(default_factory=Codes)
    categories: Codes[str] = field(default_factory=Codes)
    texts: Codes[str] = field(default_factory=Codes)
    threads: Codes[tuple[Any, Any]] = field(default_factory=Codes)
    counter_names: Codes[tuple[Any, str]] = field(default_factory=Codes)
    counters: Counters = field(default_factory=Counters)
    counter_codes: dict[tuple[Any, str, str, str], int] = field(default_factory=dict)
    arrow_numbers: Codes[str] = field(default_factory=Codes)
    process_names: dict[Any, str] = field(default_factory=dict)
    thread_names: dict[tuple[Any, Any], str] = field(default_factory=dict)
    # Many small columns among short-lived objects would keep twice their memory from being used.
    spans: Pile = field(default_factory=lambda: Pile(_HELD_ROWS))
    arrows: Pile = field(default_factory=lambda: Pile(_HELD_ROWS))

    def take(self, events: list[Event]) -> None:
        spans = [e for e in events if e.ph == "X"]
        if spans:
            self._take_spans(spans)
        self._take_counters([e for e in events if e.ph == "C"])
        self._take_arrows([e for e in events if e.ph in ("s", "f") and e.cat == TO_DEVICE])
        for event in events:
            if event.ph == "M":
                self._take_name(event)

    def finish(self) -> Timeline:
        return Timeline(
            self.spans.emptied(_COLUMNS), list(self.names), list(self.categories),
            list(self.texts), list(self.threads), self.process_names, self.thread_names,
            self.counters, list(self.counter_names),
            Arrows(**self.arrows.emptied(Arrows._fields)),
        )  # fmt: skip

    def _take_spans(self, spans: list[Event]) -> None:
        ts_ns = moments(_plain(spans, attrgetter("ts")))
        dur_ns = lengths(_plain(spans, attrgetter("dur")))
        timed = (ts_ns != NEVER) & (dur_ns >= 0)
        untimed = int((~timed).sum())
        self.say("an event has no time or length and was left out", untimed)
        if untimed:
            spans = [span for span, known in zip(spans, timed.tolist(), strict=True) if known]
        columns = {
            "ts_ns": ts_ns[timed],
            "dur_ns": dur_ns[timed],
            "name": self.names.of((e.name or "" for e in spans), len(spans)),
            "category": self.categories.of((e.cat or "" for e in spans), len(spans)),
            "thread": self.threads.of(map(_thread, spans), len(spans)),
        }
        args = _decoded([e.args for e in spans])
        for name in _NUMBERS:
            values = [_whole(getattr(a, name)) for a in args]
            columns[name] = narrow(np.array(values, dtype=np.int64))
        for name in _TEXTS:
            texts = map(attrgetter(name), args)
            codes = [-1 if text is None else self.texts[text] for text in texts]
            columns[name] = np.array(codes, dtype=np.int32)
        self.spans.append(columns)

    def _take_counters(self, events: list[Event]) -> None:
        if not events:
            return
        moment = moments(_plain(events, attrgetter("ts"))).tolist()
        rows: list[tuple[int, int, float]] = []
        for event, when, told in zip(events, moment, _told([e.args for e in events]), strict=True):
            label = (
                tuple((k, v) for k, v in told.items() if k.endswith("id")) if len(told) > 1 else ()
            )
            for key, value in told.items():
                name = self._counter(_hashed(event.pid), event.name or "", key, label)
                if name >= 0 and type(value) in (int, float) and when != NEVER:
                    rows.append((when, name, float(value)))
        if rows:
            ts_ns, names, values = zip(*rows, strict=True)
            self.counters.append(Samples(
                np.array(ts_ns, dtype=np.int64), np.array(names, dtype=np.int32),
                np.array(values, dtype=np.float64),
            ))  # fmt: skip

    def _counter(self, pid: Any, name: str, key: str, label: tuple[tuple[str, Any], ...]) -> int:
        """The number of a counter: by process, name, which of several it is, and unit."""
        known = (pid, name, key, str(label))
        if known not in self.counter_codes:
            is_label = any(key == other for other, _ in label)
            shown = _counter_name(name, key, label)
            self.counter_codes[known] = -1 if is_label else self.counter_names[pid, shown]
        return self.counter_codes[known]

    def _take_arrows(self, events: list[Event]) -> None:
        if not events:
            return
        ts_ns = moments(_plain(events, attrgetter("ts")))
        threads = self.threads.of(map(_thread, events), len(events))
        numbers = self.arrow_numbers.of((str(e.id) for e in events), len(events))
        is_start = np.array([e.ph == "s" for e in events])
        known = ts_ns != NEVER
        arrows = Arrows(ts_ns[known], threads[known], numbers[known], is_start[known])
        self.arrows.append(arrows._asdict())

    def _take_name(self, event: Event) -> None:
        if event.name not in ("process_name", "thread_name"):
            return
        try:
            name = msgspec.json.decode(event.args, type=NameArgs).name.strip()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if event.name == "process_name":
            self.process_names[_hashed(event.pid)] = name
        else:
            self.thread_names[_thread(event)] = name


def _plain(events: list[Event], raw: Callable[[Event], msgspec.Raw]) -> list[str]:
    """Raw numbers, in quotes or not, as text."""
    texts = list(map(bytes, map(raw, events)))
    plain = b"\n".join(texts).replace(b'"', b"").decode("utf-8", "replace").split("\n")
    return (
        plain if len(plain) == len(events) else [text.decode("utf-8", "replace") for text in texts]
    )


def _thread(event: Event) -> tuple[Any, Any]:
    return _hashed(event.pid), _hashed(event.tid)


def _hashed(number: Number) -> Any:
    """So that 3 and 3.0 and None and 0 are the same, as a viewer takes them."""
    return 0 if number is None else number


def _decoded(raws: list[msgspec.Raw]) -> list[Args]:
    """The arguments of many events at once; of each alone if one of them is odd."""
    texts = [bytes(raw) or b"{}" for raw in raws]
    try:
        return msgspec.json.decode(b"[" + b",".join(texts) + b"]", type=list[Args])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [_loose(text) for text in texts]


def _loose(text: bytes) -> Args:
    try:
        return msgspec.json.decode(text, type=Args, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Args()


def _told(raws: list[msgspec.Raw]) -> list[dict[str, Any]]:
    """The arguments of many counters at once; of each alone if one of them is odd."""
    texts = [bytes(raw) or b"{}" for raw in raws]
    try:
        return msgspec.json.decode(b"[" + b",".join(texts) + b"]", type=list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [_loose_dict(text) for text in texts]


def _loose_dict(text: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _counter_name(name: str, key: str, label: tuple[tuple[str, Any], ...]) -> str:
    """`HBM 0/Read (MB/s)`, `read_bandwidth acc_id 0`."""
    shown = name + "".join(f" {which} {value}" for which, value in label)
    unit = _UNIT.search(key)
    if unit:
        return f"{shown} ({unit.group(1)})"
    return shown if key in (name, "value", "") else f"{shown} ({key})"


def _whole(value: Number) -> int:
    try:
        number = int(value) if value is not None else -1
    except (ValueError, OverflowError):
        return -1
    return number if 0 <= number < _LARGEST else -1
