"""Any Chrome trace as columns: every event with a time, counters, and what threads are called.

Phases: X, B and E, i I and R, C, s t and f, b n and e, S T p and F, M. Others (objects, samples,
memory dumps, clock marks) hold nothing that the tables have a place for, and are counted.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from strobe.ingest.formats.chrome.chunks import EventStream
from strobe.ingest.formats.chrome.json_objects import (
    Event,
    Label,
    arguments,
    key_of,
    nanoseconds,
    text,
)
from strobe.ingest.trace import progress
from strobe.ingest.trace.codes import Array, Codes
from strobe.ingest.trace.span_spool import Spool
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import Counters, Samples

Thread = tuple[Any, Any]  # pid, tid
PHASES = "XBEiIRstfbneSTpF"
PHASE = {phase: number for number, phase in enumerate(PHASES)}
_FLOWS = {*"stf"}
_EDGES, _INSTANTS, _ASYNCHRONOUS = "BE", "iIR", "bneSTpF"
_OTHERS = {*_EDGES, *_INSTANTS, *_ASYNCHRONOUS}
_NUMBERS = ("bytes", "flops", "stream", "correlation")
_AFTER_OTHERS = 1 << 60  # of equal times, ends that are spans come last
_NUMBER = re.compile(rb'"(?:' + "|".join(_NUMBERS).encode() + rb')"')
_TS, _DUR, _NAME, _CATEGORY = map(attrgetter, ("ts", "dur", "name", "cat"))
_THREAD = attrgetter("pid", "tid")


class _Args(msgspec.Struct, gc=False):
    bytes: int | float | str | None = None
    flops: int | float | str | None = None
    stream: int | float | str | None = None
    correlation: int | float | str | None = None


@dataclass
class Named:
    """What the metadata calls processes and threads, and the order it wants them in."""

    processes: dict[Any, str] = field(default_factory=dict)
    threads: dict[Thread, str] = field(default_factory=dict)
    process_order: dict[Any, float] = field(default_factory=dict)
    thread_order: dict[Thread, float] = field(default_factory=dict)


@dataclass
class Events:
    """Of one file. Spans carry numbers of categories as kind, and of threads as track."""

    complete: Spool = field(default_factory=Spool)  # phase X
    # These have no length yet, and `phase` among their arguments.
    edges: Spool = field(default_factory=Spool)  # B and E
    instants: Spool = field(default_factory=Spool)
    asynchronous: Spool = field(default_factory=Spool)  # with their `key`
    counters: Counters = field(default_factory=Counters)  # their names are numbers of:
    counter_names: Codes[tuple[Any, str]] = field(default_factory=Codes)  # process, label
    categories: Codes[str] = field(default_factory=Codes)
    threads: Codes[Thread] = field(default_factory=Codes)
    named: Named = field(default_factory=Named)
    # Of flows: s, t, f, and spans that are such (with their row among the complete ones as `span`).
    ends: Spool = field(default_factory=Spool)


def gathered(stream: EventStream, words: Vocabulary) -> Events:
    gatherer = _Gatherer(stream, words)
    for batch in stream.batches():
        gatherer.take(batch)
        progress.report(events=len(batch))
    return gatherer.events


class _Texts(dict[Label, int]):
    """The numbers of labels, which are mostly text, in a vocabulary."""

    def __init__(self, codes: Codes[str]) -> None:
        self._codes = codes

    def __missing__(self, label: Label) -> int:
        self[label] = number = self._codes[text(label)]
        return number

    def of(self, labels: Iterable[Label], count: int) -> Array:
        return np.fromiter(map(self.__getitem__, labels), dtype=np.int32, count=count)


class _Gatherer:
    def __init__(self, stream: EventStream, words: Vocabulary) -> None:
        self.say, self.events = stream.say, Events()
        self.names, self.categories = _Texts(words.names), _Texts(self.events.categories)
        self.kinds = words.texts  # of flows

    def take(self, batch: list[Event]) -> None:
        by_phase: dict[str, list[Event]] = {}
        for event in batch:
            by_phase.setdefault(event.ph, []).append(event)
        for phase, events in by_phase.items():
            self._take_phase(phase, events)
        # These are matched with each other, and must stay in the order of the file.
        if by_phase.keys() & _OTHERS:
            self._take_others([event for event in batch if event.ph in _OTHERS])
        if by_phase.keys() & _FLOWS:
            self._take_ends([event for event in batch if event.ph in _FLOWS])

    def _take_phase(self, phase: str, events: list[Event]) -> None:
        if phase == "X":
            self._take_complete(events)
        elif phase == "C":
            self._take_counters(events)
        elif phase == "M":
            for event in events:
                self._take_name(event)
        elif phase not in PHASE:
            what = f"events of phase {phase[:20]!r} have no place in the tables: left out"
            self.say(what, len(events))

    def _take_complete(self, events: list[Event]) -> None:
        ts_ns, has_ts = nanoseconds(list(map(_TS, events)))
        dur_ns, has_dur = nanoseconds(list(map(_DUR, events)))
        good = has_ts & has_dur & (dur_ns >= 0)
        if not good.all():
            self.say("an event has no time or length and was left out", int((~good).sum()))
            events = _chosen(events, good)
            ts_ns, dur_ns = ts_ns[good], dur_ns[good]
        spans = Spans(
            ts_ns, dur_ns, self._categories(events), self._names(events), self._threads(events)
        )
        spans.args = self._arguments(events)
        first = self.events.complete.rows
        bound = [
            row for row, event in enumerate(events)
            if event.bind_id is not None and (event.flow_in or event.flow_out)
        ]  # fmt: skip
        if bound:
            rows = np.array(bound, dtype=np.int64)
            self._take_bound([events[row] for row in bound], spans.take(rows), first + rows)
        self.events.complete.append(spans)

    def _take_others(self, events: list[Event]) -> None:
        ts_ns, good = nanoseconds(list(map(_TS, events)))
        if not good.all():
            self.say("an event has no time and was left out", int((~good).sum()))
            events = _chosen(events, good)
        self._say_arguments(sum(1 for e in events if len(e.args) > 2 and e.ph not in "stfTpne"))
        phases = np.array([PHASE[event.ph] for event in events], dtype=np.int8)
        spans = Spans(
            ts_ns[good], np.zeros(len(events), dtype=np.int64), self._categories(events),
            self._names(events), self._threads(events), {"phase": phases},
        )  # fmt: skip
        self.events.edges.append(spans.take(of_phases(phases, _EDGES)))
        self.events.instants.append(spans.take(of_phases(phases, _INSTANTS)))
        rows = of_phases(phases, _ASYNCHRONOUS)
        asynchronous = spans.take(rows)
        asynchronous.args["key"] = _numbers_of([_key(events[row]) for row in rows.tolist()])
        self.events.asynchronous.append(asynchronous)

    def _take_ends(self, events: list[Event]) -> None:
        """Flows are joined over processes, by id, name and category."""
        ts_ns, good = nanoseconds(list(map(_TS, events)))
        if not good.all():
            self.say("an event has no time and was left out", int((~good).sum()))
            events = _chosen(events, good)
        keys = [("flow", text(e.name), text(e.cat), *key_of(e, e.id)) for e in events]
        kinds = [self.kinds[name or category or "flow"] for _, name, category, *_ in keys]
        ends = Spans(
            ts_ns[good], np.zeros(len(events), dtype=np.int64), np.zeros(len(events), np.int32),
            np.array(kinds, dtype=np.int32), self._threads(events),
        )  # fmt: skip
        is_exact = [event.bp == "e" for event in events]
        self._put_ends(ends, keys, [PHASE[event.ph] for event in events], is_exact, 0)

    def _take_bound(self, events: list[Event], spans: Spans, rows: Array) -> None:
        """Flows of the second version begin and end with spans, and have only an id."""
        keys = [("bound", *key_of(event, event.bind_id)) for event in events]
        phases = ["t" if e.flow_in and e.flow_out else "s" if e.flow_out else "f" for e in events]
        ends = replace(spans, name=np.full(len(rows), self.kinds["flow"], np.int32), args={})
        ends.dur_ns = np.zeros(len(rows), dtype=np.int64)
        ends.args["span"] = rows
        self._put_ends(ends, keys, [PHASE[p] for p in phases], [True] * len(rows), _AFTER_OTHERS)

    def _put_ends(
        self, ends: Spans, keys: list[tuple[Any, ...]], phases: list[int], is_exact: list[bool],
        after: int,
    ) -> None:  # fmt: skip
        ends.args["phase"] = np.array(phases, dtype=np.int64)
        ends.args["key"] = _numbers_of(keys)
        ends.args["place"] = after + self.events.ends.rows + np.arange(len(keys))
        ends.args["bp"] = np.array(is_exact, dtype=np.int64)
        self.events.ends.append(ends)

    def _names(self, events: list[Event]) -> Array:
        return self.names.of(map(_NAME, events), len(events))

    def _categories(self, events: list[Event]) -> Array:
        return self.categories.of(map(_CATEGORY, events), len(events))

    def _threads(self, events: list[Event]) -> Array:
        return self.events.threads.of(map(_THREAD, events), len(events))

    def _arguments(self, events: list[Event]) -> dict[str, Array]:
        rows = [row for row, event in enumerate(events) if len(event.args) > 2]
        raws = [events[row].args for row in rows]
        if not _NUMBER.search(b",".join(raws)):
            self._say_arguments(len(rows))
            return {}
        args = [_known(raw) for raw in raws]
        columns: dict[str, Array] = {}
        is_kept = np.zeros(len(rows), dtype=bool)
        for name in _NUMBERS:
            values = np.array([_integer(value) for value in map(attrgetter(name), args)])
            if (values >= 0).any():
                columns[name] = np.full(len(events), -1, dtype=np.int64)
                columns[name][rows] = values
                is_kept |= values >= 0
        self._say_arguments(int((~is_kept).sum()))
        return columns

    def _say_arguments(self, count: int) -> None:
        self.say("arguments of an event have no place in the tables and were left out", count)

    def _take_counters(self, events: list[Event]) -> None:
        ts_ns, good = nanoseconds(list(map(_TS, events)))
        self.say("an event has no time and was left out", int((~good).sum()))
        found: list[tuple[int, int, float]] = []  # when, which, how much
        for event, at, is_good in zip(events, ts_ns.tolist(), good.tolist(), strict=True):
            if not is_good:
                continue
            name = text(event.name)
            name += f" {text(event.id)}" if event.id is not None else ""
            for series, value in arguments(event.args).items():
                label = name if series in ("value", name) else f"{name} {series}".strip()
                try:
                    number = float(value)
                except (ValueError, TypeError, OverflowError):
                    self.say("a value of a counter is no number and was left out")
                    continue
                found.append((at, self.events.counter_names[event.pid, label], number))
        if found:
            when, which, values = zip(*found, strict=True)
            self.events.counters.append(
                Samples(np.array(when, np.int64), np.array(which, np.int32), np.array(values))
            )

    def _take_name(self, event: Event) -> None:
        named, args, thread = self.events.named, arguments(event.args), (event.pid, event.tid)
        if event.name == "process_name":
            named.processes[event.pid] = text(args.get("name")).strip()
        elif event.name == "thread_name":
            named.threads[thread] = text(args.get("name")).strip()
        elif event.name == "process_labels" and event.pid not in named.processes:
            named.processes[event.pid] = text(args.get("labels"))
        elif event.name == "process_sort_index":
            named.process_order[event.pid] = _order(args)
        elif event.name == "thread_sort_index":
            named.thread_order[thread] = _order(args)


def of_phases(phase: Array, phases: str) -> Array:
    """The rows of these phases."""
    return np.flatnonzero(np.isin(phase, [PHASE[each] for each in phases]))


def _key(event: Event) -> tuple[Any, ...]:
    """Asynchronous spans are joined by id and category in a process, the old ones by name too."""
    in_process = (event.pid, text(event.cat), *key_of(event, event.id))
    if event.ph in "bne":
        return ("async", *in_process)
    return ("old", text(event.name), *in_process)


class _Numbers(dict[tuple[Any, ...], int]):
    """The same for equal keys. That two others share one of the 2^64 is not to be expected, and
    all keys of a long file would not fit into memory."""

    def __missing__(self, key: tuple[Any, ...]) -> int:
        whole = [int(k) if type(k) is float and k.is_integer() else k for k in key]
        told = blake2b(repr((*whole,)).encode(), digest_size=8).digest()
        self[key] = number = int.from_bytes(told, "little", signed=True)
        return number


def _numbers_of(keys: list[tuple[Any, ...]]) -> Array:
    return np.fromiter(map(_Numbers().__getitem__, keys), dtype=np.int64, count=len(keys))


def _chosen(events: list[Event], good: Array) -> list[Event]:
    return [event for event, is_good in zip(events, good.tolist(), strict=True) if is_good]


def _known(raw: msgspec.Raw) -> _Args:
    try:
        return msgspec.json.decode(raw, type=_Args)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Args()


def _integer(value: Any) -> int:
    if value is None:
        return -1
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        return -1
    return number if 0 <= number < 2**62 else -1


def _order(args: dict[str, Any]) -> float:
    index = args.get("sort_index")
    return float(index) if isinstance(index, int | float) else 0.0
