"""Write marks that survive the death of the process, at half a microsecond each.

A segment is a file that is allocated in full and mapped; a mark is 24 bytes packed into it. Until
the process turns out to train, marks go to a buffer in memory, so that a process that never trains
(a launcher, a data worker) leaves no file behind.
"""

import contextlib
import errno
import json
import mmap
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic_ns
from typing import Any

from strobe.model.journal import FACTS_FILE, HEADER, HEADER_BYTES, MAGIC, RECORD, Mark

_get_ident = threading.get_ident

# The hot path writes a record as three words; struct would take twice as long when its code is not
# in the processor's caches. The words are little-endian: torch supports no other machines.
_WORD_BYTES = 8
_HEADER_WORDS = HEADER_BYTES // _WORD_BYTES
_RECORD_WORDS = RECORD.size // _WORD_BYTES
_CODES = max(Mark) + 1

# A block of records being filled: its words, and an atomic iterator of free slots (the index of
# each record's first word).
_Segment = tuple["memoryview[int]", Iterator[int]]

# Maximum number of marks held in memory until the journal is opened; older ones are dropped.
_PROLOGUE_RECORDS = 8192
_SEGMENT_BYTES = 1 << 20

# Released when the disk is full, so that the problem itself can still be recorded.
_RESERVE_FILE = ".reserve"
_RESERVE_BYTES = 16384

# Maximum number of facts buffered while the disk is full; more would use unbounded memory.
_MOST_LATE = 1000
# A deleted file occupies disk space until the process that wrote it has closed it.
_PATIENT_FOR_NS = 5_000_000_000


class Journal:
    def __init__(self, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self._segment_bytes = segment_bytes
        self._lock = threading.RLock()
        # By thread: for each code the last word of a record, which holds the code and the thread.
        self._last_words: dict[int, list[int]] = {}
        self._strings: dict[tuple[str, str], int] = {}
        self._pending_facts: list[dict[str, Any]] = []
        self._late_lines: list[bytes] = []
        self._patience = self._patient_until_ns = 0
        self._facts_handle: int | None = None
        self._raw: Path | None = None
        self._number = 0
        self._full = False
        self._is_refused = False
        self._is_torn = False
        self.dropped = 0
        # Called with an OSError when a write fails; the journal then stops writing.
        self.on_disk_error: Any = None
        self._segment = self._in_memory()

    @property
    def is_open(self) -> bool:
        return self._raw is not None

    @property
    def words(self) -> "memoryview[int]":
        """The block of records being filled, to be read while it is written."""
        return self._segment[0]

    def mark(
        self, code: int, ref: int = 0, value: int = 0, ts_ns: int = 0, thread: int = 0
    ) -> None:
        """Records this moment and this thread, unless `ts_ns` or `thread` is given."""
        segment = self._segment
        words, places = segment
        for place in places:  # takes the next slot; faster than next()
            words[place] = ts_ns or monotonic_ns()
            if value:
                words[place + 1] = value
            try:
                words[place + 2] = self._last_words[thread or _get_ident()][code] + ref
            except KeyError:
                words[place + 2] = self._name_thread(thread or _get_ident())[code] + ref
            return
        if self._full:
            self.dropped += 1
        else:
            ts_ns = ts_ns or monotonic_ns()
            self._next_segment(segment)
            self.mark(code, ref, value, ts_ns, thread)

    def string(self, kind: str, text: str) -> int:
        """The number of a text, to which `ref` of a mark can refer."""
        known = self._strings.get((kind, text))
        if known is not None:
            return known
        with self._lock:
            number = self._strings.setdefault((kind, text), len(self._strings) + 1)
            self.fact(type="string", id=number, kind=kind, text=text)
            return number

    def fact(self, **fact: Any) -> None:
        """Append a line to facts.jsonl; buffer it if the journal is not open yet."""
        with self._lock:
            if self._facts_handle is None:
                self._pending_facts.append(fact)
                return
            line = json.dumps(fact, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
            try:
                while self._late_lines:
                    self._append(self._facts_handle, self._late_lines[0])
                    del self._late_lines[0]
                self._append(self._facts_handle, line)
            except OSError as error:
                is_patient = self._patience or monotonic_ns() < self._patient_until_ns
                if (
                    is_patient
                    and error.errno == errno.ENOSPC
                    and len(self._late_lines) < _MOST_LATE
                ):
                    self._late_lines.append(line)
                else:
                    self._refused(error)

    @contextlib.contextmanager
    def patient(self) -> Iterator[None]:
        """Tolerate a full disk while a large file is being written.

        If the file does not fit, it is deleted, and the facts that could not be written meanwhile
        are written then.
        """
        self._patience += 1
        try:
            yield
        finally:
            self._patient_until_ns = monotonic_ns() + _PATIENT_FOR_NS
            self._patience -= 1

    def _append(self, handle: int, line: bytes) -> None:
        line = b"\n" + line if self._is_torn else line
        written = os.write(handle, line)
        self._is_torn = written < len(line)
        if self._is_torn:  # only part of it was written
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open(self, raw: Path) -> None:
        """Begin to write to disk, starting with the buffered marks. Raises OSError."""
        with self._lock:
            words, _ = self._map_segment(raw)
            _allocate(raw / _RESERVE_FILE, _RESERVE_BYTES)
            self._facts_handle = os.open(
                raw / FACTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            self._raw = raw
            prologue, places = self._segment
            end = next(places, len(prologue))
            words[_HEADER_WORDS:end] = prologue[_HEADER_WORDS:end]
            self._segment = _segment(words, end)
            for fact in self._pending_facts:
                self.fact(**fact)
            self._pending_facts.clear()

    def hush(self) -> None:
        """Stop writing marks."""
        with self._lock:
            self._full = True
            self._segment = _segment(memoryview(b""))

    def close(self) -> None:
        with self._lock:
            self.hush()
            if self._facts_handle is not None:
                os.close(self._facts_handle)
                self._facts_handle = None
                self._free_reserve()

    def _in_memory(self) -> _Segment:
        size = HEADER_BYTES + _PROLOGUE_RECORDS * RECORD.size
        return _segment(memoryview(bytearray(size)).cast("q"))

    def _next_segment(self, full: _Segment) -> None:
        with self._lock:
            if self._segment is not full:  # another thread was faster
                return
            if self._raw is None:  # a long prologue: keep the newer half
                words, _ = self._in_memory()
                later = full[0][_HEADER_WORDS + _PROLOGUE_RECORDS // 2 * _RECORD_WORDS :]
                end = _HEADER_WORDS + len(later)
                words[_HEADER_WORDS:end] = later
                self._segment = _segment(words, end)
                return
            try:
                self._segment = self._map_segment(self._raw)
            except OSError as error:
                self._full = True
                self._refused(error)

    def _map_segment(self, raw: Path) -> _Segment:
        self._number += 1
        buffer = _allocate(raw / f"journal-{self._number:04}.bin", self._segment_bytes)
        header = json.dumps({"segment": self._number, "pid": os.getpid()}).encode()
        HEADER.pack_into(buffer, 0, MAGIC, len(header))
        buffer[HEADER.size : HEADER.size + len(header)] = header
        return _segment(memoryview(buffer).cast("q"))

    def _name_thread(self, thread: int) -> list[int]:
        with self._lock:
            number = len(self._last_words) + 1 & 0xFFFF
            last_words = [code << 48 | number << 32 for code in range(_CODES)]
            self._last_words[thread] = last_words
            # registers itself, if Python does not know the thread
            current = threading.current_thread()
            found = next((one for one in threading.enumerate() if one.ident == thread), current)
            self.fact(type="thread", id=number, native_id=found.native_id, name=found.name)
            return last_words

    def _refused(self, error: OSError) -> None:
        if self._is_refused:
            return
        self._is_refused = True
        self._free_reserve()
        if self.on_disk_error is not None:
            self.on_disk_error(error)

    def _free_reserve(self) -> None:
        if self._raw is not None:
            with contextlib.suppress(OSError):  # the folder was deleted, including the reserve
                os.unlink(self._raw / _RESERVE_FILE)


def _segment(words: "memoryview[int]", first_place: int = _HEADER_WORDS) -> _Segment:
    return words, iter(range(first_place, len(words) - _RECORD_WORDS + 1, _RECORD_WORDS))


def _allocate(path: Path, size: int) -> mmap.mmap:
    """A file with every block allocated: writing to a sparse file on a full disk would raise
    SIGBUS.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(handle, 0, size)
        return mmap.mmap(handle, size)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
