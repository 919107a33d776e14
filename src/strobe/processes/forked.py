"""Processes forked from this one while it has a single thread: they start in a few milliseconds.

Whoever forks beside other threads may copy a lock that one of them holds, for ever. So this is
for a process of our own (`strobe import`), early: before DuckDB or anybody else has started a
thread. Elsewhere nobody stands by, and workers are started anew.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import IO

_standing: list["Forked"] = []
# The least that saves a pipe from being emptied and filled many times for one piece of work.
_PIPE_BYTES = 1 << 20


class Forked:
    """With the words of subprocess.Popen."""

    def __init__(self, life: Callable[[IO[bytes], IO[bytes]], None]) -> None:
        its_input, our_output = _pipe()
        our_input, its_output = _pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(our_output)
            os.close(our_input)
            _live(life, its_input, its_output)
        os.close(its_input)
        os.close(its_output)
        self.stdin: IO[bytes] | None = open(our_output, "wb")  # noqa: SIM115
        self.stdout: IO[bytes] | None = open(our_input, "rb")  # noqa: SIM115

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        with contextlib.suppress(ChildProcessError):
            return os.waitpid(self._pid, 0)[1]
        return 0


@contextlib.contextmanager
def standing_by(count: int, life: Callable[[IO[bytes], IO[bytes]], None]) -> Iterator[None]:
    """So many processes that live `life`, for the one who takes them; ended if nobody does."""
    if may_fork():
        _standing.extend(Forked(life) for _ in range(count))
    try:
        yield
    finally:
        for process in taken():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def taken() -> list[Forked]:
    """Those that stand by; the next one who asks gets none."""
    found = _standing[:]
    _standing.clear()
    return found


def may_fork() -> bool:
    """Whether there is one thread; those of native libraries count too. Only Linux tells."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _live(life: Callable[[IO[bytes], IO[bytes]], None], given: int, told: int) -> None:
    """Nothing of what the parent has begun is finished here, whatever happens."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        _standing.clear()
        with open(given, "rb") as work, open(told, "wb") as results:
            life(work, results)
    finally:
        os._exit(0)


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import fcntl

        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reading, writing
