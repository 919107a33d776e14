"""Processes that work for this one: forked where that is safe, started elsewhere.

A fork takes a few milliseconds and has everything that is loaded here. But next to other threads it
may copy a lock that one of them holds, and wait for it forever. So only a process with one thread
forks. A started process takes a tenth of a second and more. Neither is done by multiprocessing,
which runs the user's script again in its children.
"""

import contextlib
import ctypes
import importlib
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

# What a process does: it reads its work, and writes its results.
Life = Callable[[IO[bytes], IO[bytes]], None]

_PR_SET_PDEATHSIG = 1  # prctl.h
# The least that saves a pipe from being emptied and filled many times for one piece of work.
_PIPE_BYTES = 1 << 20
_MOST_OUTPUT_BYTES = 1 << 16
_START = "from strobe.processes import process; process.live_started()"


class Process(Protocol):
    """As of subprocess."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def kill(self) -> None: ...
    def wait(self) -> int: ...


class Forked:
    """A copy of this process, which ends with it. Only if `may_fork`."""

    def __init__(self, life: Life) -> None:
        its_input, our_output = _pipe()
        our_input, its_output = _pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            try:
                os.close(our_output)
                os.close(our_input)
                _end_with(parent)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                _live(life, open(its_input, "rb"), open(its_output, "wb"))  # noqa: SIM115
            finally:
                os._exit(1)
        os.close(its_input)
        os.close(its_output)
        self.stdin: IO[bytes] | None = open(our_output, "wb")  # noqa: SIM115
        self.stdout: IO[bytes] | None = open(our_input, "rb")  # noqa: SIM115

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        with contextlib.suppress(ChildProcessError):
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return 0


def may_fork() -> bool:
    """Whether there is one thread; those of native libraries count too. Only Linux tells."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def started(life: str, **variables: str) -> Process:
    """A new Python process for a `Life` ("module:name"), with these environment variables."""
    import subprocess  # not at the top: importing it takes milliseconds, and forks do without

    return subprocess.Popen(
        [sys.executable, "-c", _START, life],
        env=environment(**variables), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def environment(**variables: str) -> dict[str, str]:
    """Of this process, so that another one finds this package from any folder."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def function(name: str) -> Callable[..., Any]:
    """Of "module:name"."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


def live_started() -> None:
    _live(function(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)


def _live(life: Life, work: IO[bytes], results: IO[bytes]) -> None:
    """Nothing of what the parent has begun is finished here, whatever happens."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent handles and reports it
        life(work, results)
        results.flush()
        code = 0
    except BrokenPipeError:  # the parent wants no more
        pass
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _end_with(parent: int) -> None:
    """A signal that kills the parent kills this process too."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before the call
        os._exit(1)


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import fcntl

        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reading, writing


# --- one function in a process of its own -------------------------------------------------


class Ended(NamedTuple):
    code: int  # negative: the signal that ended it
    words: str  # the last line that it wrote


def run_apart(call: Callable[..., None], *arguments: Any) -> Ended:
    """Wait until a function has run in a process of its own, where its crash or its memory ends.

    Both the function and its arguments must be picklable.
    """
    process = Forked(_call) if may_fork() else started(f"{__name__}:_call")
    assert process.stdin is not None and process.stdout is not None
    with process.stdout as output:
        with contextlib.suppress(BrokenPipeError), process.stdin as work:
            pickle.dump((call, arguments), work)
        words = output.read(_MOST_OUTPUT_BYTES).decode("utf-8", "replace")
    return Ended(process.wait(), (words.strip().splitlines() or ["no word"])[-1])


def _call(work: IO[bytes], results: IO[bytes]) -> None:
    # What a library prints must not end up in the output of a command.
    for number in (1, 2):
        os.dup2(results.fileno(), number)
    call, arguments = pickle.load(work)
    call(*arguments)
