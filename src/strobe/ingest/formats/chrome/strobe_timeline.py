"""Strobe's own chrome_timeline.json: the tables it was written from, row by row.

What only viewers need (counters drawn as rates, arrows) is not read: the tables hold it all.
"""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.chrome.chunks import EventStream
from strobe.ingest.formats.chrome.tables import END_OF_TIME_NS, TableRows, texts
from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import About, Trace
from strobe.model.schema import EVENTS, PROBLEMS, STORED_TABLES, Table

NAME = "Strobe's timeline"

_NS_PER_US = 1000
_HEADER = re.compile(rb'"otherData"\s*:\s*\{\s*"strobe_timeline"\s*:\s*\d+\s*,\s*"ranks"\s*:\s*\[')
_NUMBERS = re.compile(rb"[\d\s,]*")
_STARTED = re.compile(rb'"started_unix_ns"\s*:\s*(\d{1,20})\b')
_OF_EVENTS = tuple(table for table in STORED_TABLES if table.name.endswith("_args"))
_TABLES = {table.name: table for table in STORED_TABLES}


class _Args(msgspec.Struct, gc=False):
    id: int = -1
    step: int | None = None
    scope: str | None = None
    parent: int | None = None
    launcher: int | None = None
    track: int | None = None
    strobe: msgspec.Raw = msgspec.Raw(b"")


# An event's rows in the tables of arguments come under the names of these.
_EventArgs = msgspec.defstruct(
    "_EventArgs", [(table.name, msgspec.Raw, msgspec.Raw(b"")) for table in _OF_EVENTS],
    bases=(_Args,), gc=False,
)  # fmt: skip


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    pid: int = -1
    tid: int = 0
    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    args: _EventArgs = msgspec.field(default_factory=_EventArgs)  # type: ignore[valid-type]


def claim(folder: Path) -> list[Found]:
    return []


def recognise(peek: Peek) -> Found | None:
    header = _HEADER.search(peek.head)
    if header is None:
        return None
    numbers = _NUMBERS.match(peek.head, header.end()).group()  # type: ignore[union-attr]
    ranks = dict.fromkeys(int(number[:9]) for number in numbers.split(b",") if number.strip())
    return Found((peek.path,), ranks=tuple(ranks), first_unix_ns=_started(peek.head) or None)


def read(source: Source, words: Vocabulary) -> Trace:
    stream = EventStream(source.path, _Event)
    wanted = source.rank if source.part is None else source.part  # its rank in the file
    rows = {table.name: TableRows(table) for table in STORED_TABLES}
    track_of: dict[int, int] = {}
    trace = Trace(words, stream.problems)
    for batch in stream.batches():
        mine = [event for event in batch if event.pid == wanted]
        for event in (event for event in mine if event.ph == "M"):
            _take_metadata(event, rows, track_of, trace)
        try:
            _take_events([event for event in mine if event.ph in ("X", "i")], rows, track_of)
        except (msgspec.MsgspecError, ValueError, OverflowError) as error:
            stream.say(f"some events are not as Strobe writes them and were left out: {error}")
    if not any(len(table) for table in rows.values()):
        raise UnreadableTrace.of(
            "errors/traces.nothing-of-rank", where=str(source.path), rank=wanted
        )
    left_out = sum(table.left_out for table in rows.values())
    stream.say("rows lack what every row has, and were left out", left_out)
    _say_problems(rows.pop(PROBLEMS.name), trace)
    for table in rows.values():
        table.move(wanted, source.rank)
    trace.ready = rows
    started = _started(stream.header)
    trace.is_unix = started > 0
    trace.shift(started)
    return trace


def _started(header: bytes) -> int:
    found = _STARTED.search(header)
    started = int(found.group(1)) if found else 0
    return started if started < END_OF_TIME_NS else 0


def _take_metadata(
    event: _Event, rows: dict[str, TableRows], track_of: dict[int, int], trace: Trace
) -> None:
    args: Any = event.args
    if event.name == "thread_name" and args.track is not None:
        track_of[event.tid] = args.track
    if not args.strobe:
        return
    try:
        held = json.loads(bytes(args.strobe))
        if event.name == "process_name":
            known = {field.name for field in fields(About)}
            trace.about = About(**{key: held[key] for key in known & set(held)})
        elif event.name == "process_labels":
            rows[held["table"]].add(held["columns"])
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        trace.said.add(
            "rows", f"some rows are not as Strobe writes them and were left out: {error}"
        )


def _take_events(
    events: list[_Event], rows: dict[str, TableRows], track_of: dict[int, int]
) -> None:
    args: list[Any] = [event.args for event in events]
    ids = [given.id for given in args]
    rows[EVENTS.name].add(
        {
            "id": ids,
            "track_id": [track_of.get(event.tid, -1) for event in events],
            "ts_ns": _nanoseconds([event.ts for event in events]),
            "dur_ns": _nanoseconds([event.dur for event in events]),
            "kind": [event.cat for event in events],
            "name": [event.name for event in events],
            "step": [given.step for given in args],
            "parent_id": [given.parent for given in args],
            "launcher_id": [given.launcher for given in args],
            "scope": [given.scope for given in args],
        }
    )
    for table in _OF_EVENTS:
        raws = [getattr(given, table.name) for given in args]
        _take_rows(table, ids, raws, rows[table.name])


def _take_rows(table: Table, ids: list[int], raws: list[msgspec.Raw], rows: TableRows) -> None:
    held = [(id, raw) for id, raw in zip(ids, raws, strict=True) if raw]
    if held:
        found = rows.decode(b"[" + b",".join(raw for _, raw in held) + b"]")
        columns = {name: [getattr(row, name) for row in found] for name in table.column_names[1:]}
        rows.add({"event_id": [id for id, _ in held], **columns})


def _nanoseconds(microseconds: list[float]) -> Array:
    ns = np.rint(np.array(microseconds, dtype=np.float64) * _NS_PER_US)
    is_time = np.abs(ns) < END_OF_TIME_NS  # false for what is no number, too
    return np.where(is_time, ns, END_OF_TIME_NS).astype(np.int64)


def _say_problems(rows: TableRows, trace: Trace) -> None:
    """Those of the run it was exported from are told on, beside those of reading it back."""
    (told,) = rows.parts()
    for source, what, count in zip(
        texts(told["source"]), texts(told["what"]), told["count"].tolist(), strict=True
    ):
        trace.said.add(str(source), str(what), count)
