"""Write marks so that they survive the death of the process, for half a microsecond each.

A segment is a file that is allocated in full and mapped; a mark is 24 bytes packed into it. Until
the process turns out to train, marks go to a buffer in memory, so that a process that never trains
(a launcher, a data worker) leaves no file behind.
"""

import contextlib
import errno
import itertools
import json
import mmap
import os
import threading
from pathlib import Path
from time import monotonic_ns
from typing import Any

from strobe.model.journal import FACTS_FILE, HEADER, HEADER_BYTES, MAGIC, RECORD

_pack_into = RECORD.pack_into
_get_ident = threading.get_ident
_RECORD_BYTES = RECORD.size

# Marks kept in memory until the journal is opened; older ones of a longer prologue are dropped.
_PROLOGUE_RECORDS = 8192
_SEGMENT_BYTES = 1 << 20

# Given back when the disk is full, so that it can be written down that it was.
_RESERVE_FILE = ".reserve"
_RESERVE_BYTES = 16384


class _Segment:
    """A run of records being filled. Threads draw their place from `places`, atomically."""

    __slots__ = ("buffer", "limit", "places")

    def __init__(self, buffer: Any, limit: int) -> None:
        self.buffer, self.limit = buffer, limit
        self.places = itertools.count()


class Journal:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._threads: dict[int, int] = {}
        self._strings: dict[tuple[str, str], int] = {}
        self._pending_facts: list[dict[str, Any]] = []
        self._facts_handle: int | None = None
        self._raw: Path | None = None
        self._number = 0
        self._full = False
        self._is_refused = False
        self._is_torn = False
        self.dropped = 0
        # Called with an OSError when the disk refuses; the journal then keeps silent.
        self.on_disk_error: Any = None
        self._segment = self._in_memory()

    @property
    def is_open(self) -> bool:
        return self._raw is not None

    def mark(self, code: int, ref: int = 0, value: int = 0) -> None:
        # The hot path: mark_at without the call, for a segment that has room.
        segment = self._segment
        place = next(segment.places)
        thread = self._threads.get(_get_ident())
        if place >= segment.limit or thread is None:
            self._mark_slowly(segment, place, monotonic_ns(), code, ref, value)
            return
        _pack_into(segment.buffer, HEADER_BYTES + place * _RECORD_BYTES, monotonic_ns(), value,
                   ref, thread, code)  # fmt: skip

    def mark_at(self, ts_ns: int, code: int, ref: int = 0, value: int = 0) -> None:
        segment = self._segment
        self._mark_slowly(segment, next(segment.places), ts_ns, code, ref, value)

    def _mark_slowly(
        self, segment: _Segment, place: int, ts_ns: int, code: int, ref: int, value: int
    ) -> None:
        while place >= segment.limit:
            if self._full:
                self.dropped += 1
                return
            segment = self._next_segment(segment)
            place = next(segment.places)
        thread = self._threads.get(_get_ident())
        if thread is None:
            thread = self._name_thread()
        _pack_into(segment.buffer, HEADER_BYTES + place * RECORD.size, ts_ns, value, ref, thread,
                   code)  # fmt: skip

    def string(self, kind: str, text: str) -> int:
        """The number of a text, which `ref` of a mark can name."""
        known = self._strings.get((kind, text))
        if known is not None:
            return known
        with self._lock:
            number = self._strings.setdefault((kind, text), len(self._strings) + 1)
            self.fact(type="string", id=number, kind=kind, text=text)
            return number

    def fact(self, **fact: Any) -> None:
        """Append a line to facts.jsonl; before the journal is open, keep it."""
        with self._lock:
            if self._facts_handle is None:
                self._pending_facts.append(fact)
                return
            line = json.dumps(fact, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
            try:
                self._append(self._facts_handle, line)
            except OSError as error:
                self._refused(error)

    def _append(self, handle: int, line: bytes) -> None:
        line = b"\n" + line if self._is_torn else line
        written = os.write(handle, line)
        self._is_torn = written < len(line)
        if self._is_torn:  # the disk took a part of it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open(self, raw: Path) -> None:
        """Begin to write to disk, first what was marked so far. Raises OSError."""
        with self._lock:
            segment = self._map_segment(raw)
            _allocate(raw / _RESERVE_FILE, _RESERVE_BYTES)
            self._facts_handle = os.open(
                raw / FACTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            self._raw = raw
            prologue, placed = self._segment.buffer, next(self._segment.places)
            kept = min(placed, self._segment.limit)
            start, size = HEADER_BYTES, RECORD.size
            segment.buffer[start : start + kept * size] = prologue[start : start + kept * size]
            segment.places = itertools.count(kept)
            self._segment = segment
            for fact in self._pending_facts:
                self.fact(**fact)
            self._pending_facts.clear()

    def close(self) -> None:
        with self._lock:
            self._full = True
            self._segment = _Segment(bytearray(), 0)
            if self._facts_handle is not None:
                os.close(self._facts_handle)
                self._facts_handle = None
                self._free_reserve()

    def _in_memory(self) -> _Segment:
        size = HEADER_BYTES + _PROLOGUE_RECORDS * RECORD.size
        return _Segment(bytearray(size), _PROLOGUE_RECORDS)

    def _next_segment(self, full: _Segment) -> _Segment:
        with self._lock:
            if self._segment is not full:  # another thread was here first
                return self._segment
            if self._raw is None:  # a long prologue: keep its later half
                fresh = self._in_memory()
                half = _PROLOGUE_RECORDS // 2 * RECORD.size
                kept = full.buffer[HEADER_BYTES + half :]
                fresh.buffer[HEADER_BYTES : HEADER_BYTES + len(kept)] = kept
                fresh.places = itertools.count(len(kept) // RECORD.size)
                self._segment = fresh
                return fresh
            try:
                self._segment = self._map_segment(self._raw)
            except OSError as error:
                self._full = True
                self._refused(error)
            return self._segment

    def _map_segment(self, raw: Path) -> _Segment:
        self._number += 1
        buffer = _allocate(raw / f"journal-{self._number:04}.bin", _SEGMENT_BYTES)
        header = json.dumps({"segment": self._number, "pid": os.getpid()}).encode()
        HEADER.pack_into(buffer, 0, MAGIC, len(header))
        buffer[HEADER.size : HEADER.size + len(header)] = header
        return _Segment(buffer, (_SEGMENT_BYTES - HEADER_BYTES) // RECORD.size)

    def _name_thread(self) -> int:
        with self._lock:
            number = self._threads.setdefault(_get_ident(), len(self._threads) + 1) & 0xFFFF
            current = threading.current_thread()
            self.fact(
                type="thread", id=number, native_id=threading.get_native_id(), name=current.name
            )
            return number

    def _refused(self, error: OSError) -> None:
        if self._is_refused:
            return
        self._is_refused = True
        self._free_reserve()
        if self.on_disk_error is not None:
            self.on_disk_error(error)

    def _free_reserve(self) -> None:
        if self._raw is not None:
            with contextlib.suppress(OSError):  # the folder was removed, and the reserve with it
                os.unlink(self._raw / _RESERVE_FILE)


def _allocate(path: Path, size: int) -> mmap.mmap:
    """A file whose every block exists: a sparse one on a full disk would be a SIGBUS."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(handle, 0, size)
        return mmap.mmap(handle, size)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
