"""Progress of long work: readers report it, and the process that waits displays it.

Ranks are read in processes of their own, so each process writes its progress to a small file in a
folder named by an environment variable. Without the variable, reporting does nothing.
"""

import contextlib
import os
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FOLDER = "STROBE_PROGRESS"
_COUNT = struct.Struct("<QQ")
_WORTH_BYTES = 1 << 20  # between two reports


class Done(NamedTuple):
    bytes: int  # of the files, as stored on disk
    events: int


class _Notes:
    """The progress of this process."""

    def __init__(self, folder: str) -> None:
        self.folder, self.pid = folder, os.getpid()
        self.bytes = self.events = self.noted = 0
        self.lock = threading.Lock()
        with contextlib.suppress(OSError):
            self.file = os.open(Path(folder) / str(self.pid), os.O_CREAT | os.O_WRONLY)

    def add(self, bytes_read: int, events: int) -> None:
        with self.lock:
            self.bytes += bytes_read
            self.events += events
            if self.bytes - self.noted < _WORTH_BYTES and not events:
                return
            self.noted = self.bytes
            with contextlib.suppress(OSError, AttributeError):
                os.pwrite(self.file, _COUNT.pack(self.bytes, self.events), 0)


_notes: _Notes | None = None


def report(bytes_read: int = 0, events: int = 0) -> None:
    """Report that this much more was read."""
    global _notes
    folder = os.environ.get(_FOLDER)
    if folder is None:
        return
    if _notes is None or (_notes.folder, _notes.pid) != (folder, os.getpid()):
        _notes = _Notes(folder)
    _notes.add(bytes_read, events)


class Meter:
    """Adds up what all processes have reported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def done(self) -> Done:
        counts = [Done(0, 0)]
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                note = path.read_bytes()
                if len(note) == _COUNT.size:
                    counts.append(Done(*_COUNT.unpack(note)))
        return Done(sum(c.bytes for c in counts), sum(c.events for c in counts))


@contextlib.contextmanager
def metered() -> Iterator[Meter]:
    """Inside this block, the progress of this process and its children can be read."""
    before = os.environ.get(_FOLDER)
    with tempfile.TemporaryDirectory(prefix="strobe-progress-") as folder:
        os.environ[_FOLDER] = folder
        try:
            yield Meter(Path(folder))
        finally:
            if before is None:
                os.environ.pop(_FOLDER)
            else:
                os.environ[_FOLDER] = before
