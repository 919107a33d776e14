"""Notice what the processes of a run write, without polling.

On Linux the kernel reports it (inotify); elsewhere the waiting thread has to poll. Changes reach
the waiting thread as a SIGCHLD, like the end of a child.
"""

import ctypes
import os
import signal
import struct
import threading
from pathlib import Path

_MODIFIED, _MOVED_TO, _CREATED = 0x2, 0x80, 0x100
_EVENT = struct.Struct("iIII")
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)


def watch(run: Path, facts: str) -> bool:
    """Send this thread SIGCHLD whenever a rank of the run appears, states a fact (a line in the
    file of that name) or completes a file; whether that is possible here."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        handle = libc.inotify_init1(_CLOSE_ON_EXEC)
    except (OSError, AttributeError):
        return False
    if handle < 0:
        return False
    watcher = _Watcher(libc, handle, facts)
    if not watcher.add(run, _CREATED):
        os.close(handle)
        return False
    threading.Thread(target=watcher.work, name="strobe-news", daemon=True).start()
    return True


class _Watcher:
    def __init__(self, libc: ctypes.CDLL, handle: int, facts: str) -> None:
        self._libc, self._handle, self._facts = libc, handle, facts
        self._waiting = threading.get_ident()
        self._places: dict[int, Path] = {}

    def add(self, place: Path, what: int) -> bool:
        number = self._libc.inotify_add_watch(self._handle, os.fsencode(place), what)
        if number < 0:  # it is gone already, or the user has as many watches as they may
            return False
        self._places[number] = place
        return True

    def work(self) -> None:
        while True:
            try:
                data = os.read(self._handle, 1 << 16)
            except OSError:
                return
            self._follow(data)
            signal.pthread_kill(self._waiting, signal.SIGCHLD)

    def _follow(self, data: bytes) -> None:
        """Watch what has appeared: a rank, its raw folder, its facts."""
        place = 0
        while place < len(data):
            number, what, _, length = _EVENT.unpack_from(data, place)
            name = data[place + _EVENT.size :][:length].rstrip(b"\0")
            place += _EVENT.size + length
            if what & _CREATED and number in self._places:
                self._watch_new(self._places[number] / os.fsdecode(name))

    def _watch_new(self, path: Path) -> None:
        if path.name == self._facts:
            self.add(path, _MODIFIED)
        elif path.name.startswith("rank_") and self.add(path, _CREATED):
            self._watch_if_there(path / "raw")
        elif path.name == "raw" and self.add(path, _CREATED | _MOVED_TO):
            self._watch_if_there(path / self._facts)

    def _watch_if_there(self, path: Path) -> None:
        """It may have been made before its folder was watched."""
        if path.exists():
            self._watch_new(path)
