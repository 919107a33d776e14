"""Rows of scalars in mapped files, which survive the death of the process.

A file is allocated and mapped by the writing thread before it is needed, so that a slow disk never
stalls training. Where the next file is not ready in time, rows go to memory and are copied later.
"""

import contextlib
import json
import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any

from strobe.model.metric_journal import (
    DEFINITION,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    RECORD,
    ROW_HEADER_WORDS,
    SEGMENT_NAME,
    UNKNOWN_STEP,
    WORD_BYTES,
    WORDS_SHIFT,
    row_struct,
)

# The first file is small: most ranks need no more.
_FIRST_BYTES, _MOST_BYTES = 1 << 18, 1 << 22
_HEADER_WORDS = HEADER_BYTES // WORD_BYTES
# Rows that may be in memory: before the rank is known, and while the disk is full or slow.
_MOST_IN_MEMORY = 64 << 20


class Series:
    """Tags that are logged together, and how a row of them is packed."""

    __slots__ = ("definition", "first_word", "number", "pack", "segment", "tags", "words")

    def __init__(self, number: int, tags: tuple[str, ...], source: str) -> None:
        self.number, self.tags = number, tags
        self.words = ROW_HEADER_WORDS + len(tags)
        self.first_word = self.words << WORDS_SHIFT | number
        self.pack: Callable[..., None] = row_struct(len(tags)).pack_into
        # The segment that has its definition.
        self.segment: Segment | None = None
        self.definition = _definition(number, tags, source)


def _definition(number: int, tags: tuple[str, ...], source: str) -> bytes:
    text = json.dumps({"tags": tags, "source": source}).encode()
    return _text_row(DEFINITION | number, text)


def _text_row(kind: int, text: bytes) -> bytes:
    words = 2 + -(-len(text) // WORD_BYTES)
    head = (words << WORDS_SHIFT | kind).to_bytes(WORD_BYTES, "little")
    return (
        head
        + len(text).to_bytes(WORD_BYTES, "little")
        + text.ljust((words - 2) * WORD_BYTES, b"\0")
    )


class Segment:
    """A block of rows: a mapped file, or memory."""

    __slots__ = ("buffer", "end", "path", "place", "words")

    def __init__(self, buffer: mmap.mmap | bytearray, path: Path | None = None) -> None:
        self.buffer, self.path = buffer, path
        self.words = memoryview(buffer).cast("q")
        self.place, self.end = _HEADER_WORDS, len(self.words)

    def add(self, row: bytes) -> None:
        """A row for which there is room; its first word is written last."""
        at = self.place * WORD_BYTES
        self.buffer[at + WORD_BYTES : at + len(row)] = row[WORD_BYTES:]
        self.buffer[at : at + WORD_BYTES] = row[:WORD_BYTES]
        self.place += len(row) // WORD_BYTES


class Segments:
    """Where the scalars of this process go. Rows come from any thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` makes the writing thread call `prepare` soon."""
        self._wake = wake
        self._lock = threading.Lock()
        self._preparing = threading.Lock()  # files are made by one thread at a time
        self._raw: Path | None = None
        self._of_process, self._number = "", 0
        self._ready: Segment | None = None
        self._is_closed = False
        self._current = _in_memory()
        # Full blocks that are still to be copied to files, oldest first.
        self._waiting: list[Segment] = []
        # Rows that were lost because too many waited for a disk that is full or slow.
        self.lost = 0

    def append(self, series: Series, step: int | None, ts_ns: int, values: Any) -> None:
        """Raises struct.error if a value is not a number, TypeError if a step is not one."""
        with self._lock:
            segment = self._current
            place = segment.place
            end = place + series.words
            if end > segment.end or series.segment is not segment:
                made = self._make_room(series)
                if made is None:
                    return
                segment, place = made, made.place
                end = place + series.words
            series.pack(
                segment.buffer, (place + 1) * WORD_BYTES,
                UNKNOWN_STEP if step is None else step, ts_ns or monotonic_ns(), *values,
            )  # fmt: skip
            segment.words[place] = series.first_word
            segment.place = end

    def append_record(self, text: bytes) -> None:
        """A record as JSON, at most MOST_RECORD_BYTES long."""
        row = _text_row(RECORD, text)
        with self._lock:
            is_full = self._current.place + len(row) // WORD_BYTES > self._current.end
            segment = self._next() if is_full else self._current
            if segment is None:
                self.lost += 1
            else:
                segment.add(row)

    def _make_room(self, series: Series) -> Segment | None:
        """The segment for the next row, with the definition of its series."""
        needed = series.words + len(series.definition) // WORD_BYTES
        is_full = self._current.place + needed > self._current.end
        segment = self._next() if is_full else self._current
        if segment is None:
            self.lost += 1
            return None
        if series.segment is not segment:
            segment.add(series.definition)
            series.segment = segment
        return segment

    def _next(self) -> Segment | None:
        if self._is_closed:
            return None
        if self._current.path is None:
            in_memory = sum(len(one.buffer) for one in self._waiting)
            if in_memory >= _MOST_IN_MEMORY:
                return None
            self._waiting.append(self._current)
        ready, self._ready = self._ready, None
        self._current = ready or _in_memory()
        if self._raw is not None:
            self._wake()
        return self._current

    def open(self, raw: Path, of_process: str = "") -> None:
        """The rank's folder is known: files are made there by `prepare`."""
        self._raw, self._of_process = raw, of_process

    @property
    def is_behind(self) -> bool:
        """Whether rows are in memory that could be in a file."""
        current = self._current
        return bool(self._waiting) or (current.path is None and current.place > _HEADER_WORDS)

    def make_first(self) -> None:
        """Have a file at once, with the rows so far. Raises OSError."""
        with self._preparing:
            if self._number == 0 and self._current.path is None and not self._waiting:
                made = self._allocate(_FIRST_BYTES)
                with self._lock:
                    self._move_current(made)

    def prepare(self) -> None:
        """Copy rows in memory to files, and have the next file ready. Raises OSError."""
        if self._raw is None or self._is_closed:
            return
        with self._preparing:
            while self._waiting:
                self._store(self._waiting[0])
                with self._lock:
                    del self._waiting[0]
            if self._current.path is None:
                made = self._allocate(self._next_bytes())
                with self._lock:
                    self._move_current(made)
            # A rank that logs little has one small file; one that has filled it never waits again.
            if self._ready is None and self._number > 1:
                self._ready = self._allocate(self._next_bytes())

    def _next_bytes(self) -> int:
        return min(_MOST_BYTES, _FIRST_BYTES << 2 * self._number)

    def _move_current(self, made: Segment) -> None:
        """From memory to a file: rows that follow go there."""
        memory = self._current
        if memory.path is not None or memory.place > made.end:
            self._ready = self._ready or made
            return
        made.words[_HEADER_WORDS : memory.place] = memory.words[_HEADER_WORDS : memory.place]
        made.place = memory.place
        self._current = made

    def _store(self, memory: Segment) -> None:
        made = self._allocate(memory.place * WORD_BYTES)
        made.words[_HEADER_WORDS : memory.place] = memory.words[_HEADER_WORDS : memory.place]

    def _allocate(self, size: int) -> Segment:
        assert self._raw is not None
        path = self._raw / SEGMENT_NAME.format(self._of_process, self._number + 1)
        # Every block is allocated: writing to a sparse file on a full disk would raise SIGBUS.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(handle, 0, size)
            buffer = mmap.mmap(handle, size)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(handle)
        self._number += 1
        header = json.dumps({"segment": self._number, "pid": os.getpid()}).encode()
        HEADER.pack_into(buffer, 0, MAGIC, len(header))
        buffer[HEADER.size : HEADER.size + len(header)] = header
        return Segment(buffer, path)

    def close(self) -> None:
        """Rows that follow are dropped; the file that was ready in advance is removed."""
        with self._lock:
            self._is_closed = True
            self._current = Segment(bytearray(HEADER_BYTES))
            ready, self._ready = self._ready, None
        if ready is not None and ready.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(ready.path)


def _in_memory() -> Segment:
    return Segment(bytearray(_FIRST_BYTES))
