"""The Chrome JSON that torch.profiler (Kineto) writes, as columns.

Reads complete events (ph X) with the arguments that Strobe uses, the `[memory]` instants, and the
names of threads. Does not read flow arrows (the same links follow from correlation and sequence
numbers), Kineto's own bookkeeping (category Trace), or the arguments of Python functions.
Format: https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from strobe.ingest.codes import Array, Codes
from strobe.ingest.json_chunks import CHUNK_BYTES, EventFile
from strobe.ingest.kineto_json import (
    ARGS_OF_CATEGORY,
    EXACT_DECODER,
    NUMBERS,
    TEXTS,
    UNKNOWN,
    Event,
    ExactEvent,
    MemoryArgs,
    NameArgs,
    OtherArgs,
    decoder_for,
    has_time,
    integers,
    lenient,
    nanoseconds,
)
from strobe.ingest.problems import Problems

_LEFT_OUT_CATEGORIES = {"Trace", "Traces"}
_NAME, _CATEGORY, _TS, _DUR = map(attrgetter, ("name", "cat", "ts", "dur"))
_THREAD = attrgetter("pid", "tid")


@dataclass
class Events:
    """Columns of the spans of one file. Text is numbers into `names`, `categories`, `texts`."""

    ts_ns: Array
    dur_ns: Array
    name: Array
    category: Array
    thread: Array  # into Trace.threads
    args: dict[str, Array]  # by NUMBERS and TEXTS; -1 where absent


@dataclass
class Memory:
    """Columns of the `[memory]` instants of one file; a free has negative bytes."""

    ts_ns: Array
    thread: Array
    address: Array
    bytes: Array
    device_type: Array
    device_id: Array


@dataclass
class Trace:
    """One file. Times are nanoseconds since 1970."""

    events: Events
    memory: Memory
    names: list[str]
    categories: list[str]
    texts: list[str]
    threads: list[tuple[int | str, int | str]]  # pid, tid
    thread_names: dict[tuple[int | str, int | str], str]
    header: dict[str, Any]
    problems: Problems


def read(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Trace:
    """Everything readable of a file; what is not readable is in the result's problems."""
    file = EventFile(path, chunk_bytes)
    reader = _Reader(file)
    for chunk in file.chunks():
        reader.take(chunk)
    return reader.finish()


@dataclass
class _Reader:
    file: EventFile
    names: Codes[str] = field(default_factory=Codes)
    categories: Codes[str] = field(default_factory=Codes)
    texts: Codes[bytes] = field(default_factory=Codes)
    threads: Codes[tuple[int | str, int | str]] = field(default_factory=Codes)
    thread_names: dict[tuple[int | str, int | str], str] = field(default_factory=dict)
    spans: list[dict[str, Array]] = field(default_factory=list)
    memory: list[dict[str, Array]] = field(default_factory=list)
    decoder: "msgspec.json.Decoder[list[Event]] | None" = None

    def take(self, chunk: bytes) -> None:
        if self.decoder is None:
            self.decoder = decoder_for(chunk)
        try:
            events = self.decoder.decode(b"[" + chunk + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            events = list(self._one_by_one(chunk))
        spans = [e for e in events if e.ph == "X" and e.cat not in _LEFT_OUT_CATEGORIES]
        timed = [e for e in spans if has_time(e)]
        self.file.say("an event has no time or length and was left out", len(spans) - len(timed))
        spans = timed
        if spans:
            self.spans.append(self._span_columns(spans))
        instants = [e for e in events if e.name == "[memory]" and e.ph in "iI" and has_time(e)]
        if instants:
            self.memory.append(self._memory_columns(instants))
        self._name_threads([e for e in events if e.ph == "M" and e.name == "thread_name"])

    def finish(self) -> Trace:
        base = self.file.header.get("baseTimeNanoseconds", 0)
        base = base if isinstance(base, int) else 0
        texts = [text.decode("utf-8", "replace") for text in self.texts]
        columns = _joined(self.spans, ("ts_ns", "dur_ns", "name", "category", "thread"))
        args = _joined(self.spans, NUMBERS + TEXTS)
        columns["ts_ns"] += base
        memory = _joined(self.memory, tuple(f.name for f in fields(Memory)))
        memory["ts_ns"] += base
        return Trace(
            Events(**columns, args=args), Memory(**memory), list(self.names),
            list(self.categories), texts, list(self.threads), self.thread_names,
            self.file.header, self.file.problems,
        )  # fmt: skip

    def _span_columns(self, spans: list[Event]) -> dict[str, Array]:
        count = len(spans)
        categories = list(map(_CATEGORY, spans))
        columns = {
            "ts_ns": nanoseconds(list(map(_TS, spans))),
            "dur_ns": nanoseconds(list(map(_DUR, spans))),
            "name": self.names.of(map(_NAME, spans), count),
            "category": self.categories.of(categories, count),
            "thread": self.threads.of(map(_THREAD, spans), count),
        }
        columns |= {name: np.full(count, UNKNOWN, dtype=np.int64) for name in NUMBERS}
        columns |= {name: np.full(count, UNKNOWN, dtype=np.int32) for name in TEXTS}
        kinds = {c: ARGS_OF_CATEGORY.get(c, OtherArgs) for c in set(categories)}
        for kind in filter(None, dict.fromkeys(kinds.values())):
            rows = [i for i, c in enumerate(categories) if kinds[c] is kind]
            args = self._decoded([spans[i].args for i in rows], kind)
            self._fill(columns, np.array(rows), args, kind)
        return columns

    def _fill(self, columns: dict[str, Array], rows: Array, args: list[Any], kind: type) -> None:
        for name in kind.__struct_fields__:  # type: ignore[attr-defined]
            values = map(attrgetter(name), args)
            if name in TEXTS:
                codes = self.texts.of(map(bytes, values), len(args))
                columns[name][rows] = np.where(codes == self.texts[b""], UNKNOWN, codes)
            elif name == "old_external":
                old = integers(list(values))
                columns["external"][rows] = np.maximum(columns["external"][rows], old)
            else:
                columns[name][rows] = integers(list(values))

    def _memory_columns(self, instants: list[Event]) -> dict[str, Array]:
        count = len(instants)
        args = self._decoded([e.args for e in instants], MemoryArgs)
        columns = {
            "ts_ns": nanoseconds(list(map(_TS, instants))),
            "thread": self.threads.of(map(_THREAD, instants), count),
        }
        for name in ("address", "bytes", "device_type", "device_id"):
            columns[name] = integers([getattr(a, name) for a in args])
        return columns

    def _decoded(self, raws: list[msgspec.Raw], kind: Any) -> list[Any]:
        """The arguments of many events at once; of each alone if one of them is odd."""
        text = b"[" + b",".join(raws) + b"]"
        try:
            return msgspec.json.decode(text, type=list[kind])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [lenient(bytes(raw), kind) or kind() for raw in raws]

    def _one_by_one(self, chunk: bytes) -> Iterator[Event]:
        kind = ExactEvent if self.decoder is EXACT_DECODER else Event
        for piece in self.file.pieces(chunk):
            event = lenient(piece, kind)
            if event is None:
                self.file.say("an event is not valid JSON and was left out")
            else:
                yield event

    def _name_threads(self, events: list[Event]) -> None:
        named = self._decoded([e.args for e in events], NameArgs)
        self.thread_names.update(
            ((e.pid, e.tid), args.name.strip()) for e, args in zip(events, named, strict=True)
        )


def _joined(parts: list[dict[str, Array]], names: tuple[str, ...]) -> dict[str, Array]:
    empty = np.zeros(0, dtype=np.int64)
    return {
        name: np.concatenate([part[name] for part in parts]) if parts else empty.copy()
        for name in names
    }
