"""A function in a process of its own, so that its crash, or its hunger for memory, ends there.

Forked where that is safe, from a process with one thread: it then has all that is loaded here, and
begins in a few milliseconds.
"""

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from strobe.processes import forked

_PR_SET_PDEATHSIG = 1  # prctl.h
# Somebody's last words; the rest of a long traceback is of no use.
_LONGEST_WORDS = 1 << 16


class Ended(NamedTuple):
    code: int  # negative: the signal that ended it
    words: str  # the last that it said


def run_apart(function: Callable[..., None], *arguments: Any) -> Ended:
    """Wait until a function has run. It must be one that can be imported."""
    if forked.may_fork():
        return _forked(function, arguments)
    return _started(function, arguments)


def _forked(function: Callable[..., None], arguments: tuple[Any, ...]) -> Ended:
    hearing, speaking = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if not child:
        _live(function, arguments, speaking, parent)
    os.close(speaking)
    with open(hearing, "rb") as pipe:
        said = pipe.read(_LONGEST_WORDS)
    status = os.waitpid(child, 0)[1]
    return Ended(os.waitstatus_to_exitcode(status), _last_line(said.decode("utf-8", "replace")))


def _live(
    function: Callable[..., None], arguments: tuple[Any, ...], speaking: int, parent: int
) -> None:
    """Nothing of what the parent has begun is finished here, whatever happens."""
    code = 1
    try:
        _end_with(parent)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        # What a library prints goes where nobody takes it for an answer.
        os.dup2(speaking, 1)
        os.dup2(speaking, 2)
        function(*arguments)
        code = 0
    except BaseException:
        os.write(speaking, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _end_with(parent: int) -> None:
    """Whoever kills the one who waits for us means us too."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before we had said so
        os._exit(1)


def _started(function: Callable[..., None], arguments: tuple[Any, ...]) -> Ended:
    import subprocess

    package = str(Path(__file__).parents[2])
    paths = [package, os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", "from strobe.processes import child; child.live_started()"],
        input=pickle.dumps((function, arguments)), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    return Ended(done.returncode, _last_line(done.stderr.decode("utf-8", "replace")))


def live_started() -> None:
    function, arguments = pickle.load(sys.stdin.buffer)
    function(*arguments)


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or ["no word"])[-1]
