"""Write what ended windows recorded, on a background thread."""

import contextlib
import gzip
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.model.journal import WRITING_CPU_COUNTER, Mark

# A full disk may still have room for a few bytes.
_PROBE_BYTES = 1 << 20


class Ended(NamedTuple):
    """A window, or a piece of one, to be written."""

    recorded: Any  # what the framework's profiler returned, and what belongs to it
    number: int
    steps: tuple[int, int]  # the first step, and the one after the last


class Exporter:
    """Writes windows on a thread of its own, one after the other."""

    def __init__(
        self, recorder: Recorder, framework: str,
        write: Callable[[Any, Path], tuple[Path, int]],
        wrote: Callable[[int, int], None], lost: Callable[[], None],
    ) -> None:  # fmt: skip
        """`wrote` receives the bytes of text and the steps of each piece; `lost` is called if one
        is lost.
        """
        self._recorder, self._framework, self._write = recorder, framework, write
        self._wrote, self._lost = wrote, lost
        self._has_lost = False
        # One may wait while another is written; then the loop waits, or memory would fill up.
        self._queue: queue.Queue[Ended | None] = queue.Queue(maxsize=1)
        self._thread = threading.Thread(target=self._work, name="strobe-exporter", daemon=True)
        self._thread.start()

    def put(self, ended: Ended) -> None:
        self._queue.put(ended)

    @property
    def is_idle(self) -> bool:
        return not self._queue.unfinished_tasks

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (ended := self._queue.get()) is not None:
            try:
                with self._recorder.journal.patient():
                    self._export_or_report(ended)
                    with contextlib.suppress(Exception):  # a dead thread would block the exit
                        self._mark_cost()
            finally:
                ended = None  # frees what the framework still holds open
                self._queue.task_done()

    def _mark_cost(self) -> None:
        """Record the CPU time of this thread so far."""
        journal = self._recorder.journal
        ref = journal.string("counter", WRITING_CPU_COUNTER)
        journal.mark(Mark.COUNTER, ref, time.thread_time_ns())

    def _export_or_report(self, ended: Ended) -> None:
        try:
            self._export(ended)
        except Exception as error:
            what = notice("window-lost", reason=error)
            self._recorder.problem(self._framework, what)
            if not self._has_lost:  # the next piece is lost for the same reason
                self._recorder.say(what)
            self._has_lost = True
            self._lost()

    def _export(self, ended: Ended) -> None:
        raw = self._recorder.raw
        if raw is None:  # nothing was trained, so there is no rank to write to
            return
        fact = {"type": "window", "number": ended.number, "steps": list(ended.steps)}
        self._recorder.journal.fact(**fact, state="exporting")
        file, size = self._write(ended.recorded, raw / f"window-{ended.number:04}")
        self._wrote(size, ended.steps[1] - ended.steps[0])
        self._recorder.journal.fact(**fact, file=file.name, state="complete", bytes=size)


def compress(plain: Path, packed: Path) -> None:
    """All or nothing: the plain file is deleted only when the compressed one is complete."""
    temporary = packed.with_name(f".{packed.name}")
    try:
        with open(plain, "rb") as source, gzip.open(temporary, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        os.replace(temporary, packed)
        plain.unlink()
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def why_unwritten(folder: Path) -> str:
    """Why files cannot be written there, in the system's words; empty if they can."""
    probe = folder / f".probe-{os.getpid()}"
    try:
        with open(probe, "wb") as file:
            file.write(bytes(_PROBE_BYTES))
            os.fsync(file.fileno())
    except OSError as error:
        return f"cannot write to {folder}: {error.strerror or error}"
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return ""
