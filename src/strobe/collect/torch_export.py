"""The traces of ended windows, written and compressed off the loop."""

import gzip
import json
import os
import queue
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.collect.torch_names import Names


class Exporter:
    """Writes the traces of ended windows on a thread of its own; torch lets go of the GIL there."""

    def __init__(
        self, recorder: Recorder, wrote: Callable[[int, int], None], lost: Callable[[], None]
    ) -> None:
        """`wrote` is told the bytes of text and the steps of each piece; `lost`, that one was."""
        self._recorder, self._wrote, self._lost = recorder, wrote, lost
        self._has_lost = False
        # One may wait while another is written; then the loop waits, or memory would fill up.
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._thread = threading.Thread(target=self._work, name="strobe-exporter", daemon=True)
        self._thread.start()

    def put(self, *window: Any) -> None:
        self._queue.put(window)

    @property
    def is_idle(self) -> bool:
        return not self._queue.unfinished_tasks

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (window := self._queue.get()) is not None:
            try:
                with self._recorder.journal.patient():
                    self._export_or_tell(window)
            finally:
                window = None  # and with it what torch still holds open
                self._queue.task_done()

    def _export_or_tell(self, window: Any) -> None:
        try:
            self._export(*window)
        except Exception as error:
            what = f"a window of full recording was lost: {error}"
            self._recorder.problem("torch", what)
            if not self._has_lost:  # the next piece is lost for the same reason
                self._recorder.say(what)
            self._has_lost = True
            self._lost()

    def _export(self, profiler: Any, number: int, names: Names, steps: tuple[int, int]) -> None:
        raw = self._recorder.raw
        if raw is None:  # nothing was trained, so there is no rank to keep it for
            return
        stem = raw / f"window-{number:04}"
        plain, packed = Path(f"{stem}.trace.json"), Path(f"{stem}.trace.json.gz")
        fact = {"type": "window", "number": number, "file": packed.name, "steps": list(steps)}
        self._recorder.journal.fact(**fact, state="exporting")
        with open(f"{stem}.names.json", "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(names.to_json(), file, ensure_ascii=False)
        profiler.export_chrome_trace(str(plain))
        size = plain.stat().st_size if plain.exists() else 0
        if not size:
            # torch says "Failed to write" on stderr and returns: the disk is full or read-only.
            for leftover in raw.glob(f"{plain.name}*"):
                leftover.unlink()
            raise OSError("torch could not write it; is the disk full?")
        self._wrote(size, steps[1] - steps[0])
        _compress(plain, packed)
        self._recorder.journal.fact(**fact, state="complete", bytes=size)


def _compress(plain: Path, packed: Path) -> None:
    """Whole or not at all: the plain file goes only when the packed one is there."""
    temporary = packed.with_name(f".{packed.name}")
    try:
        with open(plain, "rb") as source, gzip.open(temporary, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        os.replace(temporary, packed)
        plain.unlink()
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
