"""The Chrome JSON that torch.profiler (Kineto) writes, as columns.

Reads complete events (ph X) with the arguments that Strobe uses, the `[memory]` instants, and the
names of threads. Does not read flow arrows (the same links follow from correlation and sequence
numbers), Kineto's own bookkeeping (category Trace), or the arguments of Python functions.
Format: https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.formats.json_chunks import CHUNK_BYTES, EventFile, Range
from strobe.ingest.formats.kineto.batch import Batch, Thread, joined
from strobe.ingest.formats.kineto.json_objects import MEMORY, TEXTS, UNKNOWN, needs_exact
from strobe.ingest.trace.codes import Array, Codes, mapped
from strobe.ingest.trace.problems import Problems
from strobe.processes import ordered_pool

_DECODE = "strobe.ingest.formats.kineto.batch:decode"
_SPAN = ("ts_ns", "dur_ns", "name", "category", "thread")


@dataclass
class Events:
    """Columns of spans. Text is numbers into `names`, `categories`, `texts` of the trace."""

    ts_ns: Array
    dur_ns: Array
    name: Array
    category: Array
    thread: Array  # into Trace.threads
    args: dict[str, Array]  # -1 where absent

    def arg(self, name: str) -> Array:
        given = self.args.get(name)
        return given if given is not None else np.full(len(self.ts_ns), UNKNOWN, dtype=np.int64)


@dataclass
class Memory:
    """Columns of the `[memory]` instants; a free has negative bytes."""

    ts_ns: Array
    thread: Array
    address: Array
    bytes: Array
    device_type: Array
    device_id: Array
    allocated: Array  # on that device, afterwards; -1 where unknown
    reserved: Array


@dataclass
class Trace:
    """One file, or a piece of it. Times are nanoseconds since 1970."""

    events: Events
    memory: Memory
    names: list[str]
    categories: list[str]
    texts: list[str]
    threads: list[Thread]
    thread_names: dict[Thread, str]
    header: dict[str, Any]
    problems: Problems
    # What the times of all pieces still lack: the file dated itself only at its end.
    late_base_ns: int = 0


def read(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Trace:
    """Everything readable of a file; what is not readable is in the result's problems."""
    (trace,) = pieces(path, chunk_bytes=chunk_bytes)
    trace.events.ts_ns += trace.late_base_ns
    trace.memory.ts_ns += trace.late_base_ns
    return trace


def pieces(
    path: Path, events_each: float = np.inf, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Trace]:
    """A file in pieces of about so many events. The lists of names grow from piece to piece;
    names of threads, header and problems are complete with the last one."""
    file = EventFile(path, chunk_bytes)
    joiner = _Joiner(file)
    for batch in _batches(file):
        joiner.take(batch)
        if joiner.count >= events_each:
            yield joiner.piece()
    yield joiner.finish()


def _batches(file: EventFile) -> Iterator[Batch]:
    return ordered_pool.mapped(_DECODE, _work(file), expected_bytes=file.expected_bytes())


def _work(file: EventFile) -> Iterator[tuple[bytes | Range, tuple[bytes, ...], bool]]:
    is_exact: bool | None = None
    for piece in file.pieces():
        if is_exact is None:
            is_exact = needs_exact(piece if isinstance(piece, bytes) else next(piece.lists()))
        yield piece, file.first_keys, is_exact


@dataclass
class _Joiner:
    """Puts batches, each with words of its own, into the words of the file."""

    file: EventFile
    names: Codes[str] = field(default_factory=Codes)
    categories: Codes[str] = field(default_factory=Codes)
    texts: Codes[bytes] = field(default_factory=Codes)
    threads: Codes[Thread] = field(default_factory=Codes)
    thread_names: dict[Thread, str] = field(default_factory=dict)
    spans: list[dict[str, Array]] = field(default_factory=list)
    memory: list[dict[str, Array]] = field(default_factory=list)
    count: int = 0
    is_undated: bool = False

    def take(self, batch: Batch) -> None:
        for what, count in batch.said.items():
            self.file.say(what, count)
        self.thread_names.update(batch.thread_names)
        threads = [self.threads[thread] for thread in batch.threads]
        if batch.spans:
            self.spans.append(self._in_our_words(batch, threads))
            self.count += len(batch.spans["ts_ns"])
        if batch.memory:
            batch.memory["thread"] = mapped(batch.memory["thread"], threads)
            self.memory.append(batch.memory)

    def _in_our_words(self, batch: Batch, threads: list[int]) -> dict[str, Array]:
        tables = dict.fromkeys(TEXTS, [self.texts[text] for text in batch.texts])
        tables["name"] = [self.names[name] for name in batch.names]
        tables["category"] = [self.categories[category] for category in batch.categories]
        tables["thread"] = threads
        return {
            name: mapped(column, tables[name]) if name in tables else column
            for name, column in batch.spans.items()
        }

    def piece(self) -> Trace:
        # Chunks are read ahead: the header may be known before the last piece, and comes too late.
        base = None if self.is_undated else self._base()
        self.is_undated |= base is None
        spans = {**_nothing(_SPAN), **joined(self.spans)}
        memory = {**_nothing(("ts_ns", "thread", *MEMORY)), **joined(self.memory)}
        columns = {name: spans[name] for name in _SPAN}
        args = {name: column for name, column in spans.items() if name not in columns}
        columns["ts_ns"] += base or 0
        memory["ts_ns"] += base or 0
        memory["bytes"] = memory.pop("taken")
        self.spans, self.memory, self.count = [], [], 0
        return Trace(
            Events(**columns, args=args), Memory(**memory), list(self.names),
            list(self.categories), [text.decode("utf-8", "replace") for text in self.texts],
            list(self.threads), self.thread_names, self.file.header, self.file.problems,
        )  # fmt: skip

    def finish(self) -> Trace:
        was_undated = self.is_undated
        trace = self.piece()
        if was_undated:
            trace.late_base_ns = self._base() or 0
        return trace

    def _base(self) -> int | None:
        base = self.file.header.get("baseTimeNanoseconds")
        return base if type(base) is int and 0 <= base < 2**62 else None


def _nothing(names: tuple[str, ...]) -> dict[str, Array]:
    return {name: np.zeros(0, dtype=np.int64) for name in names}
