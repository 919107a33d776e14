"""A run of Kineto's events, from JSON text to columns: the hot path of reading.

Pure, and in words of its own, so that another process can do it; `kineto.read` joins the batches.
A megabyte at a time is decoded: what was decoded is then still in the processor's cache when its
columns are taken, which is twice as quick as sixteen at a time.
"""

import itertools
from dataclasses import dataclass, field
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from strobe.ingest.formats.json_chunks import Range, gap_before
from strobe.ingest.formats.kineto.json_objects import (
    ARGS_OF_CATEGORY,
    ARGS_OF_NAME,
    DECODER,
    END_OF_TIME_US,
    EXACT_DECODER,
    HOST_ARGS,
    HOST_DECODER,
    LONGEST_US,
    MEMORY,
    NO_ARGS,
    NOT_OF_HOST,
    OTHER_ARGS,
    SPELLINGS,
    TEXTS,
    UNKNOWN,
    Event,
    ExactEvent,
    are_shortened,
    has_time,
    integers,
    lenient,
    nanoseconds,
    shortened,
)
from strobe.ingest.trace import progress
from strobe.ingest.trace.codes import Array, Codes

_LEFT_OUT_CATEGORIES = {"Trace", "Traces"}

Thread = tuple[int | str, int | str]  # pid, tid


@dataclass
class Batch:
    """Columns whose texts are numbers into the batch's own lists."""

    names: Codes[str] = field(default_factory=Codes)
    categories: Codes[str] = field(default_factory=Codes)
    texts: Codes[bytes] = field(default_factory=Codes)
    threads: Codes[Thread] = field(default_factory=Codes)
    spans: dict[str, Array] = field(default_factory=dict)
    memory: dict[str, Array] = field(default_factory=dict)
    thread_names: dict[Thread, str] = field(default_factory=dict)
    said: dict[str, int] = field(default_factory=dict)


def decode(piece: bytes | Range, first_keys: tuple[bytes, ...], is_exact: bool) -> Batch:
    """`piece` holds whole events, comma-separated, that open with `first_keys`."""
    batch = Batch()
    lists = [b"[" + piece + b"]"] if isinstance(piece, bytes) else piece.lists()
    taken: list[_Taken] = []
    is_host: bool | None = None
    for text in lists:
        if is_host is None:
            is_host = not is_exact and NOT_OF_HOST not in text
        said = dict(batch.said)
        try:
            taken.append(_taken(text, first_keys, is_exact, is_host, batch))
        except _OtherArguments:
            is_host, batch.said = False, said
            taken.append(_taken(text, first_keys, is_exact, is_host, batch))
    batch.spans = joined([one.spans for one in taken if one.spans])
    batch.memory = joined([one.memory for one in taken if one.memory])
    progress.report(events=sum(one.events for one in taken))
    return batch


class _OtherArguments(Exception):
    """Events were taken for operators on the host, and some are not."""


class _Taken(NamedTuple):
    """What a text came to, as columns."""

    spans: dict[str, Array]
    memory: dict[str, Array]
    events: int


def _taken(
    text: bytes, first_keys: tuple[bytes, ...], is_exact: bool, is_host: bool, batch: Batch
) -> _Taken:
    """Where all are thought to be operators on the host, other arguments are not decoded."""
    events, lacking_ns = _decoded(text, first_keys, is_exact, is_host, batch)
    complete = [e for e in events if e.ph == "X"]
    spans: dict[str, Array] = {}
    memory: dict[str, Array] = {}
    if wanted := _wanted(complete, lacking_ns, batch):
        spans = _span_columns(*wanted, is_host, batch)
    if len(complete) < len(events):
        memory = _take_others([e for e in events if e.ph != "X"], lacking_ns, is_host, batch)
    return _Taken(spans, memory, len(events))


def joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """All rows of parts that have some columns in common; what a part lacks is unknown there."""
    if len(parts) < 2:
        return parts[0] if parts else {}
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([_column(part, name) for part in parts]) for name in names}


def _column(part: dict[str, Array], name: str) -> Array:
    given = part.get(name)
    if given is None:
        dtype = np.int32 if name in TEXTS else np.int64
        return np.full(len(part["ts_ns"]), UNKNOWN, dtype=dtype)
    return given


def _decoded(
    text: bytes, first_keys: tuple[bytes, ...], is_exact: bool, is_host: bool, batch: Batch
) -> tuple[list[Event], int]:
    """Events, and the nanoseconds that their times lack."""
    try:
        if is_host:
            return HOST_DECODER.decode(text), 0  # type: ignore[return-value]
        if not is_exact:
            return DECODER.decode(text), 0
        if short := shortened(text):
            events = DECODER.decode(short[0])
            if are_shortened(events):
                return events, short[1]
        return EXACT_DECODER.decode(text), 0  # type: ignore[return-value]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if is_host:
            raise _OtherArguments from None
        return _one_by_one(text[1:-1], first_keys, ExactEvent if is_exact else Event, batch), 0


def _wanted(
    spans: list[Event], lacking_ns: int, batch: Batch
) -> tuple[list[Event], dict[str, Array]] | None:
    """Those with a time and a length, and these; Kineto's own bookkeeping is not wanted."""
    categories = [e.cat for e in spans]
    if not _LEFT_OUT_CATEGORIES.isdisjoint(categories):
        spans = [e for e in spans if e.cat not in _LEFT_OUT_CATEGORIES]
        categories = [e.cat for e in spans]
    starts, lengths = [e.ts for e in spans], [e.dur for e in spans]
    start, length = (np.array(values, dtype=np.float64) for values in (starts, lengths))
    is_good = (length >= 0) & (length < LONGEST_US) & (np.abs(start) < END_OF_TIME_US)
    if not is_good.all():  # no length is not a number, which is not above 0 either
        timed = [e for e, is_timed in zip(spans, is_good.tolist(), strict=True) if is_timed]
        what = "an event has no time or length and was left out"
        batch.said[what] = batch.said.get(what, 0) + len(spans) - len(timed)
        return _wanted(timed, lacking_ns, batch)
    if not spans:
        return None
    return spans, {
        "ts_ns": nanoseconds(starts if isinstance(starts[0], Decimal) else start) + lacking_ns,
        "dur_ns": nanoseconds(length),
        "category": batch.categories.of(categories, len(spans)),
    }


def _take_others(
    events: list[Event], lacking_ns: int, is_host: bool, batch: Batch
) -> dict[str, Array]:
    """The names of threads; what memory events there are, as columns."""
    for event in events:
        if event.ph == "M" and event.name == "thread_name":
            batch.thread_names[event.pid, event.tid] = event.args.name.strip()
    instants = [e for e in events if e.name == "[memory]" and e.ph in "iI" and has_time(e)]
    if instants and is_host:
        raise _OtherArguments
    return _memory_columns(instants, lacking_ns, batch) if instants else {}


def _span_columns(
    spans: list[Event], columns: dict[str, Array], is_host: bool, batch: Batch
) -> dict[str, Array]:
    columns["name"] = batch.names.of([e.name for e in spans], len(spans))
    columns["thread"] = _thread_codes(spans, batch)
    if is_host and _have_others(batch):
        raise _OtherArguments
    groups: dict[tuple[str, ...], list[str]] = {}
    for category in batch.categories:
        groups.setdefault(ARGS_OF_CATEGORY.get(category, OTHER_ARGS), []).append(category)
    for wanted, of in groups.items():
        if len(groups) == 1:
            _fill(columns, slice(None), [e.args for e in spans], wanted, batch)
        elif wanted:
            is_of = np.isin(np.arange(len(batch.categories)), [batch.categories[c] for c in of])
            rows = np.flatnonzero(is_of[columns["category"]])
            _fill(columns, rows, [spans[i].args for i in rows.tolist()], wanted, batch)
    for name, wanted in ARGS_OF_NAME.items():
        if name in batch.names:
            rows = np.flatnonzero(columns["name"] == batch.names[name])
            _fill(columns, rows, [spans[i].args for i in rows.tolist()], wanted, batch)
    return columns


def _have_others(batch: Batch) -> bool:
    """Whether some of the events so far have more arguments than operators on the host."""
    args = (ARGS_OF_CATEGORY.get(category, OTHER_ARGS) for category in batch.categories)
    is_more = not HOST_ARGS.issuperset(itertools.chain.from_iterable(args))
    return is_more or any(name in batch.names for name in ARGS_OF_NAME)


def _thread_codes(events: list[Event], batch: Batch) -> Array:
    threads = [e.tid for e in events]
    processes = [e.pid for e in events]
    if processes.count(processes[0]) < len(processes):
        return batch.threads.of(zip(processes, threads, strict=True), len(threads))
    # One process, as nearly always: its threads need no pairs.
    codes = _ThreadsOf(processes[0], batch.threads)
    return np.fromiter(map(codes.__getitem__, threads), dtype=np.int32, count=len(threads))


class _ThreadsOf(dict[int | str, int]):
    """The codes of a process's threads."""

    def __init__(self, process: int | str, codes: Codes[Thread]) -> None:
        self._process, self._codes = process, codes

    def __missing__(self, thread: int | str) -> int:
        self[thread] = code = self._codes[self._process, thread]
        return code


def _fill(
    columns: dict[str, Array], rows: Any, args: list[Any], wanted: tuple[str, ...], batch: Batch
) -> None:
    """Enter the wanted arguments of some rows; a column that nobody has is not made."""
    for name in wanted:
        given, nothing = list(map(attrgetter(name), args)), getattr(NO_ARGS, name)
        # Of all that events may have, most have little: one look saves making a column of nothing.
        if given and given[0] is nothing and given.count(nothing) == len(given):
            continue
        values = _text_codes(given, batch) if name in TEXTS else integers(given)
        _enter(columns, SPELLINGS.get(name, name), rows, np.maximum(values, UNKNOWN))


def _enter(columns: dict[str, Array], name: str, rows: Any, values: Array) -> None:
    if name in columns:
        # Nothing said under this spelling must not undo what the other one said.
        columns[name][rows] = np.where(values >= 0, values, columns[name][rows])
    elif (values >= 0).any():
        if len(values) < (count := len(columns["ts_ns"])):
            some, values = values, np.full(count, UNKNOWN, dtype=values.dtype)
            values[rows] = some
        columns[name] = values


def _text_codes(raws: list[msgspec.Raw], batch: Batch) -> Array:
    # Joined and split again is half the price of making each of them bytes.
    texts = b"\0".join(raws).split(b"\0")
    if len(texts) != len(raws):
        texts = [bytes(raw) for raw in raws]
    codes = batch.texts.of(texts, len(texts))
    nothing = batch.texts.get(b"", UNKNOWN)
    return codes if nothing < 0 else np.where(codes == nothing, UNKNOWN, codes).astype(np.int32)


def _memory_columns(instants: list[Event], lacking_ns: int, batch: Batch) -> dict[str, Array]:
    columns = {
        "ts_ns": nanoseconds([e.ts for e in instants]) + lacking_ns,
        "thread": _thread_codes(instants, batch),
    }
    for name in MEMORY:
        columns[name] = integers([getattr(e.args, name) for e in instants])
    return columns


def _one_by_one(
    chunk: bytes, first_keys: tuple[bytes, ...], kind: type[Event], batch: Batch
) -> list[Event]:
    """Of a chunk that does not parse as a whole, the events that do."""
    start, events, lost = 0, [], 0
    ends = [found.start() + 1 for found in gap_before(first_keys).finditer(chunk)]
    for end in (*ends, len(chunk)):
        event = lenient(chunk[start:end].lstrip(b", \t\r\n"), kind)
        start = end
        if event is None:
            lost += 1
        else:
            events.append(event)
    if lost:
        what = "an event is not valid JSON and was left out"
        batch.said[what] = batch.said.get(what, 0) + lost
    return events
