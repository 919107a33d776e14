"""Wait until something changes in a folder, without polling.

On Linux the kernel (inotify) reports changes by processes of this machine. Changes by other
machines on a shared file system are seen after the timeout, as are all changes if inotify is not
available.
"""

import ctypes
import os
import select
from pathlib import Path

ANY_CHANGE = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200  # contents, modes, names of its files
NEW_FILES = 0x80 | 0x100
RENAMED_INTO = 0x80

_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_NON_BLOCKING = getattr(os, "O_NONBLOCK", 0)


class News:
    def __init__(self) -> None:
        self._said, self._say = os.pipe2(_CLOSE_ON_EXEC | _NON_BLOCKING)
        self._poll = select.poll()
        self._poll.register(self._said, select.POLLIN)
        self._watched: dict[Path, int] = {}
        self._handle = -1
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._handle = self._libc.inotify_init1(_CLOSE_ON_EXEC | _NON_BLOCKING)
        except (OSError, AttributeError):
            return
        if self._handle >= 0:
            self._poll.register(self._handle, select.POLLIN)

    @property
    def are_told(self) -> bool:
        """Whether the kernel reports changes; otherwise the timeout decides how soon a change is
        seen.
        """
        return self._handle >= 0

    def watch(self, folder: Path, what: int) -> None:
        """A folder that was removed and created again can be watched again."""
        if self._handle < 0:
            return
        number = self._libc.inotify_add_watch(self._handle, os.fsencode(folder), what)
        if number >= 0:
            self._watched[folder] = number

    def forget(self, folder: Path) -> None:
        number = self._watched.pop(folder, -1)
        if number >= 0:
            self._libc.inotify_rm_watch(self._handle, number)

    def wait(self, longest_s: float) -> bool:
        """Whether something changed before the timeout."""
        is_any = False
        for handle, _ in self._poll.poll(max(1, round(longest_s * 1000))):
            is_any = True
            try:
                os.read(handle, 1 << 16)
            except BlockingIOError:
                continue
        return is_any

    def wake(self) -> None:
        """Ends `wait`; callable from any thread."""
        try:
            os.write(self._say, b".")
        except OSError:  # already signalled, or closed
            return

    def close(self) -> None:
        for handle in (self._said, self._say, self._handle):
            if handle >= 0:
                os.close(handle)
        self._handle = self._say = -1
