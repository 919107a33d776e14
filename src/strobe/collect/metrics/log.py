"""The metric log of a process: scalars, and everything larger, on their way to the rank's folder.

Scalars are packed on the calling thread, within a microsecond each. Everything else (a number that
a device is still computing, an image to encode, a text) goes through a queue to a thread of its own
that encodes and writes it. Neither raises into training, nor waits for the disk.
"""

import collections
import contextlib
import errno
import os
import struct
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, monotonic_ns, sleep
from typing import Any

from strobe.collect.metrics.numbers import PLAIN, Later, NotANumber, number
from strobe.collect.metrics.records import as_json, settings, whole_number
from strobe.collect.metrics.segments import Segments, Series
from strobe.model.blobs import write_blob
from strobe.model.metric_journal import (
    HYPERPARAMETERS,
    LINEAGE,
    MOST_RECORD_BYTES,
    MOST_TAGS,
    RECORDS_NAME,
    TEXT,
)
from strobe.model.metric_tables import BLOBS_DIR, LOGGED

# A value is on disk after this long at the latest, if the disk accepts it.
_PERIOD_S = 0.05
# After an error of the disk, it is tried again this much later.
_RETRY_S = 1.0
# The queue holds at most this much; what is logged while it is full is lost, and counted.
_MOST_QUEUED_BYTES = 256 << 20
_MOST_QUEUED = 100_000
# How long the end of the script may wait until everything is written.
_CLOSE_S = 10.0
# The same where the disk has refused to write.
_CLOSE_REFUSED_S = 2.0
_RECORD_BYTES = 512

# Makes a record, and the file that it names (its bytes and suffix), on the writing thread.
Job = Callable[[], tuple[dict[str, Any], tuple[bytes, str] | None]]


class MetricLog:
    """`warn(source, what)` reports a problem once, on stderr and in the run."""

    def __init__(self, warn: Callable[[str, str], None]) -> None:
        self._warn = warn
        self._series: dict[tuple[str, ...], Series] = {}
        self._lock = threading.Lock()
        # There is something to write; and so much that it must not wait for the next period.
        self._woken, self._urgent = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._segments = Segments(self._hurry)
        self._queue: collections.deque[tuple[Job, int]] = collections.deque()
        self._queued_bytes = 0
        self._lost = 0
        self._later: collections.deque[tuple[Series, int | None, int, list[Any]]] = (
            collections.deque()
        )
        self._raw: Path | None = None
        self._of_process = ""
        self._records: int | None = None
        self._torn = False
        self.is_closed = False
        self._is_disk_reported = False
        # Set by a framework while its device must not be asked for a value.
        self.is_paused: Callable[[], bool] = lambda: False
        self.is_used = self._has_file = False

    def scalars(
        self, values: Mapping[str, Any], step: int | None = None, source: str = LOGGED,
        ts_ns: int = 0,
    ) -> None:  # fmt: skip
        """Numbers by tag, logged at this moment or at `ts_ns` (monotonic).

        Without a step, it is the training step at that moment.
        """
        series = self._series.get((source, *values))
        if series is None:
            if self.is_closed or not values:
                return
            if len(values) > MOST_TAGS:
                self._in_pieces(values, step, source, ts_ns)
                return
            series = self._new_series(source, tuple(values))
        numbers = values.values()
        for value in numbers:
            if value.__class__ not in PLAIN:
                self._converted(series, values, step, source, ts_ns)
                return
        try:
            self._segments.append(series, step, ts_ns, numbers)
        except (struct.error, OverflowError):
            self._converted(series, values, step, source, ts_ns)

    def _new_series(self, source: str, tags: tuple[str, ...]) -> Series:
        self.is_used = True
        with self._lock:
            key = (source, *tags)
            if key not in self._series:
                self._series[key] = Series(len(self._series) + 1, tags, source)
            series = self._series[key]
            if not self._has_file:
                self._make_first_file()
        self._start()  # rows in memory go to a file
        return series

    def _in_pieces(
        self, values: Mapping[str, Any], step: int | None, source: str, ts_ns: int
    ) -> None:
        items = list(values.items())
        for first in range(0, len(items), MOST_TAGS):
            piece = dict(items[first : first + MOST_TAGS])
            self.scalars(piece, step, source, ts_ns or monotonic_ns())

    def _converted(
        self, series: Series, values: Mapping[str, Any], step: int | None, source: str,
        ts_ns: int,
    ) -> None:  # fmt: skip
        """Values that are not all Python numbers: read those that can be read now."""
        ts_ns = ts_ns or monotonic_ns()
        step = whole_number(step)
        read: dict[str, Any] = {}
        for tag, value in values.items():
            try:
                read[tag] = number(value)
            except NotANumber as error:
                self._other(tag, value, step, source, ts_ns, str(error))
        if not read:
            return
        if len(read) < len(values) or series.tags != tuple(read):
            series = self._new_series(source, tuple(read))
        if any(value.__class__ is Later for value in read.values()):
            self._later.append((series, step, ts_ns, list(read.values())))
            self._start()
        else:
            self._segments.append(series, step, ts_ns, read.values())

    def _other(
        self, tag: str, value: Any, step: int | None, source: str, ts_ns: int, what: str
    ) -> None:
        if isinstance(value, str):
            self.text(tag, value, step, source, ts_ns)
        elif isinstance(value, Mapping):
            inner = {f"{tag}/{name}": one for name, one in value.items()}
            self.scalars(inner, step, source, ts_ns)
        elif value is not None:
            self._warn("metrics", f"{tag} was not logged: it is {what}, not a number")

    def text(
        self, tag: str, text: str, step: int | None = None, source: str = LOGGED, ts_ns: int = 0
    ) -> None:
        record = {"tag": tag, "text": str(text), "step": whole_number(step), "source": source}
        self.record(TEXT, record, len(str(text)), ts_ns)

    def hyperparameters(self, values: Mapping[str, Any], source: str = LOGGED) -> None:
        """Settings of the training by name. A name that is given again replaces its value."""
        self.record(HYPERPARAMETERS, {"values": settings(values), "source": source})

    def lineage(
        self, kind: str, values: Mapping[str, Any], step: int | None = None,
        source: str = LOGGED,
    ) -> None:  # fmt: skip
        """Facts about where a model comes from; `kind` is one of LINEAGE_KINDS."""
        record = {
            "kind": kind,
            "values": settings(values),
            "step": whole_number(step),
            "source": source,
        }
        self.record(LINEAGE, record)

    def record(self, kind: str, record: dict[str, Any], size: int = 0, ts_ns: int = 0) -> None:
        """A record that is complete already."""
        whole = {"type": kind, "monotonic_ns": ts_ns or monotonic_ns(), **record}
        text = as_json(whole) if size < MOST_RECORD_BYTES else b""
        if not text or len(text) > MOST_RECORD_BYTES:
            self.submit(lambda: (whole, None), size)
            return
        self.is_used = True
        self._segments.append_record(text)
        if not self._has_file:
            self._make_first_file()
        self._start()

    def submit(self, job: Job, size: int = 0) -> None:
        """Have a record made on the writing thread; until then it takes about `size` bytes."""
        self.is_used = True
        size += _RECORD_BYTES
        with self._lock:
            is_full = (
                self._queued_bytes + size > _MOST_QUEUED_BYTES or len(self._queue) >= _MOST_QUEUED
            )
            if is_full or self.is_closed:
                self._lost += is_full
                return
            self._queue.append((job, size))
            self._queued_bytes += size
        self._start()

    @property
    def is_open(self) -> bool:
        return self._raw is not None

    def open(self, raw: Path, of_process: str = "") -> None:
        """The rank's folder is known: write there from now on.

        `of_process` is part of the files' names in a forked process, whose parent writes there too.
        """
        self._raw, self._of_process = raw, of_process
        self._segments.open(raw, of_process)
        self._make_first_file()
        if self.is_used:
            self._start()

    def _make_first_file(self) -> None:
        """Once, on the thread that logs: from its first value on, a kill loses nothing.

        The journal of the rank has just been made in the same folder, so the disk answers.
        """
        if self._raw is None or not self.is_used:
            return
        self._has_file = True
        try:
            self._segments.make_first()
        except OSError as error:
            self._report_disk(error)

    def _start(self) -> None:
        """Have the writing thread work soon; it does not exist while there is nothing to write."""
        if self._raw is None or self.is_closed:
            return
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._work, name="strobe metrics", daemon=True
                    )
                    self._thread.start()
        self._woken.set()

    def _hurry(self) -> None:
        self._urgent.set()
        self._woken.set()

    def _work(self) -> None:
        while not self.is_closed:
            self._woken.wait()
            self._woken.clear()
            if not self._write():
                self._woken.set()
            if not self.is_closed:
                self._rest()

    def _rest(self) -> None:
        if self._is_disk_reported:
            sleep(_RETRY_S)
        else:
            self._urgent.wait(_PERIOD_S)
            self._urgent.clear()

    def _write(self) -> bool:
        """Whether everything was written."""
        try:
            self._read_later()
            self._segments.prepare()
            self._write_queue()
        except OSError as error:
            self._report_disk(error)
            return False
        except Exception as error:  # a fault of ours must not end the thread silently
            self._warn("metrics", f"a metric was lost: {type(error).__name__}: {error}")
            return False
        self._is_disk_reported = False
        self._report_lost()
        return not self._later

    def _read_later(self) -> None:
        while self._later and not self.is_paused():
            series, step, ts_ns, values = self._later[0]
            read = [self._read(tag, v) for tag, v in zip(series.tags, values, strict=False)]
            self._later.popleft()
            self._segments.append(series, step, ts_ns, read)

    def _read(self, tag: str, value: Any) -> float:
        if not isinstance(value, Later):
            return float(value)
        try:
            return value.read()
        except Exception as error:  # its buffer was given to another program, say
            self._warn("metrics", f"a value of {tag} could not be read: {error}")
            return float("nan")

    def _write_queue(self) -> None:
        while self._queue:
            job, size = self._queue[0]
            made = self._made(job)
            if made is not None:
                self._write_record(*made)
            with self._lock:
                self._queue.popleft()
                self._queued_bytes -= size

    def _made(self, job: Job) -> tuple[dict[str, Any], tuple[bytes, str] | None] | None:
        try:
            return job()
        except Exception as error:  # an image that cannot be encoded must not stop the others
            self._warn("metrics", f"a metric was not logged: {type(error).__name__}: {error}")
            return None

    def _write_record(self, record: dict[str, Any], blob: tuple[bytes, str] | None) -> None:
        """Raises OSError, and may then be called again."""
        assert self._raw is not None
        if blob is not None:
            name = write_blob(self._raw / BLOBS_DIR, *blob)
            record = {**record, "file": f"raw/{BLOBS_DIR}/{name}", "bytes": len(blob[0])}
        if self._records is None:
            self._records = os.open(
                self._raw / RECORDS_NAME.format(self._of_process),
                os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644,
            )  # fmt: skip
        line = b"\n" * self._torn + as_json(record) + b"\n"
        written = os.write(self._records, line)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _report_disk(self, error: OSError) -> None:
        if not self._is_disk_reported:
            self._is_disk_reported = True
            self._warn(
                "metrics",
                f"training metrics cannot be written to {self._raw}: {error.strerror or error}; "
                "they are held in memory until they can be, and training goes on",
            )

    def _report_lost(self) -> None:
        with self._lock:
            records, self._lost = self._lost, 0
        rows, self._segments.lost = self._segments.lost, 0
        if records or rows:
            self._warn(
                "metrics",
                f"{rows + records} metrics were lost: more was logged than the disk could take",
            )

    def flush(self) -> None:
        """Wait, within a bounded time, until what was logged so far is written."""
        wait_s = _CLOSE_REFUSED_S if self._is_disk_reported else _CLOSE_S
        thread, until = self._thread, monotonic() + wait_s
        if self._raw is not None and self.is_used:
            self._start()
            thread = self._thread
        while thread is not None and self._is_behind() and monotonic() < until:
            self._hurry()
            thread.join(0.005)
            if not thread.is_alive():
                break

    def close(self) -> None:
        """Write what waits, within a bounded time; what is logged later is dropped."""
        if self.is_closed:
            return
        self.flush()
        self.is_closed = True
        self._hurry()
        self._segments.close()
        self._report_lost()
        if self._records is not None:
            with contextlib.suppress(OSError):
                os.close(self._records)

    def _is_behind(self) -> bool:
        return bool(self._queue or self._later or self._segments.is_behind)
