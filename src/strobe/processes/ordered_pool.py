"""Work that is cut into pieces, on all cores: each piece goes to a process, results come in order.

Not by multiprocessing, which would run the user's script again in its children. A process takes
a tenth of a second and more to start, so little work is done here; a process of our own that has
one thread only may have workers forked from it, which takes some milliseconds (`forked.py`).
"""

import contextlib
import ctypes
import importlib
import os
import pickle
import queue
import signal
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from strobe.processes import forked

# Below this, starting processes costs more than they save.
_WORTH_BYTES = 48 << 20
_WORTH_FORKED_BYTES = 4 << 20
# Pieces that wait in a worker's pipe: enough to keep it busy, few enough to bound memory.
_AHEAD = 3
# The C library would give large blocks back after each piece, and ask for them again: a tenth of
# all the time.
_LARGEST_KEPT, _KEPT = 1 << 30, 1 << 28
_KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(_LARGEST_KEPT), "MALLOC_TRIM_THRESHOLD_": str(_KEPT),
}  # fmt: skip
# Whoever has one thread may fork (children.py).
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_LENGTH = struct.Struct("<Q")
_GONE = MemoryError("a process that read a part of the trace was ended, perhaps for want of memory")


def mapped(function: str, work: Iterator[tuple[Any, ...]], *, expected_bytes: int) -> Iterator[Any]:
    """`function` ("module:name") of each piece of work, in order."""
    count = _cores()
    if expected_bytes >= _WORTH_FORKED_BYTES and (standing := forked.taken()):
        return _in_processes(standing, function, work)
    if expected_bytes < _WORTH_BYTES or count < 2:
        call = _function(function)
        return (call(*piece) for piece in work)
    return _in_processes([_started() for _ in range(count)], function, work)


def beside_each_other(function: str, work: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """The same where every piece is worth a process, however small it is."""
    standing: Sequence[Process] = forked.taken()
    processes = standing or [_started() for _ in range(min(_cores(), len(work)))]
    return _in_processes(processes, function, iter(work))


def standing_by(expected_bytes: int, pieces: int = 1) -> contextlib.AbstractContextManager[None]:
    """Workers for the next one who asks for so much work, where they can be had cheaply."""
    if pieces > 1:
        return forked.standing_by(min(_cores(), pieces), serve)
    count = _cores() if expected_bytes >= _WORTH_FORKED_BYTES else 0
    return forked.standing_by(count if count > 1 else 0, serve)


def _cores() -> int:
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


def keep_memory() -> None:
    """For a process of our own that will read much: what it frees it will need again."""
    with contextlib.suppress(OSError, AttributeError):  # a C library without mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)


class Process(Protocol):
    """As of subprocess, or forked."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def kill(self) -> None: ...
    def wait(self) -> int: ...


def _in_processes(
    processes: Sequence[Process], function: str, work: Iterator[tuple[Any, ...]]
) -> Iterator[Any]:
    workers, count = [_Worker(process, function) for process in processes], len(processes)
    busy: deque[_Worker] = deque()
    try:
        for number, piece in enumerate(work):
            if len(busy) >= count * _AHEAD:
                yield busy.popleft().receive()
            worker = workers[number % count]
            worker.send(piece)
            busy.append(worker)
        while busy:
            yield busy.popleft().receive()
    finally:
        for worker in workers:
            worker.stop()


def _started() -> Process:
    import subprocess

    package = str(Path(__file__).parents[2])
    paths = [package, os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, **_KEEP_MEMORY, **_ONE_THREAD,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }  # fmt: skip
    code = "from strobe.processes import ordered_pool; ordered_pool.serve_streams()"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


class _Worker:
    def __init__(self, process: Process, function: str) -> None:
        self._process = process
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._work.put(function)
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # A pipe holds less than a piece: who hands it over waits until the worker has read it. So
        # threads wait, and all workers have their next piece at hand; and results are taken off
        # their hands meanwhile, for both sides writing would wait for ever.
        threading.Thread(target=self._hand_over, daemon=True).start()
        threading.Thread(target=self._collect, daemon=True).start()

    def _hand_over(self) -> None:
        assert self._process.stdin is not None
        while (piece := self._work.get()) is not None:
            try:
                _write(self._process.stdin, piece)
            except (OSError, ValueError):  # it died, or was stopped; receive() tells
                return

    def _collect(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._results.put(_read(self._process.stdout))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._results.put(_GONE)

    def send(self, piece: tuple[Any, ...]) -> None:
        self._work.put(piece)

    def receive(self) -> Any:
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def stop(self) -> None:
        self._work.put(None)
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()


def serve_streams() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # told by whoever gave us the work
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(work: IO[bytes], results: IO[bytes]) -> None:
    """The life of a worker: told a function, then piece after piece, until nobody is there."""
    try:
        call = _function(_read(work))
    except EOFError:
        return
    while True:
        try:
            piece = _read(work)
        except EOFError:
            return
        try:
            result = call(*piece)
        except Exception as error:
            result = error
        _write(results, result)


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    call: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return call


def _write(pipe: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, protocol=5)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("the other side of the pipe is gone")
    return pickle.loads(pipe.read(_LENGTH.unpack(head)[0]))
