"""Work that is cut into pieces, on all cores: each piece goes to a process, results come in order.

A process takes a tenth of a second and more to start, so little work is done here. A process of our
own that has one thread may fork its workers instead, before it begins anything that needs a thread:
they stand by for the first one who asks for work to be done (`standing_by`).
"""

import contextlib
import ctypes
import os
import pickle
import queue
import struct
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import IO, Any

from strobe.processes.process import Forked, Process, function, may_fork, started

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
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # so that a worker may fork
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_LENGTH = struct.Struct("<Q")
_GONE = MemoryError("a process that read a part of the trace ended, perhaps because of its memory")

_waiting: list[Forked] = []
os.register_at_fork(after_in_child=_waiting.clear)  # they work for the parent


def mapped(name: str, work: Iterator[tuple[Any, ...]], *, expected_bytes: int) -> Iterator[Any]:
    """The function `name` ("module:name") of each piece of work, in order."""
    count = _cores()
    if expected_bytes >= _WORTH_FORKED_BYTES and (workers := _taken()):
        return _in_processes(workers, name, work)
    if expected_bytes < _WORTH_BYTES or count < 2:
        call = function(name)
        return (call(*piece) for piece in work)
    return _in_processes(_started(count), name, work)


def beside_each_other(name: str, work: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """The same where every piece is worth a process, however small it is."""
    workers: Sequence[Process] = _taken() or _started(min(_cores(), len(work)))
    return _in_processes(workers, name, iter(work))


@contextlib.contextmanager
def standing_by(expected_bytes: int, pieces: int = 1) -> Iterator[None]:
    """Forked workers for the first one who asks for this much work; ended if nobody does."""
    count = _cores()
    if pieces > 1:
        count = min(count, pieces)
    elif expected_bytes < _WORTH_FORKED_BYTES or count < 2:
        count = 0
    if may_fork():
        _waiting.extend(Forked(serve) for _ in range(count))
    try:
        yield
    finally:
        for process in _taken():
            _end(process)


def _taken() -> list[Forked]:
    """Those that stand by; the next one who asks gets none."""
    found = _waiting[:]
    _waiting.clear()
    return found


def _started(count: int) -> list[Process]:
    life = f"{__name__}:serve"
    return [started(life, **_KEEP_MEMORY, **_ONE_THREAD) for _ in range(count)]


def _end(process: Process) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()


def _cores() -> int:
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


def keep_memory() -> None:
    """For a process of our own that will read much: what it frees it will need again."""
    with contextlib.suppress(OSError, AttributeError):  # a C library without mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)


def _in_processes(
    processes: Sequence[Process], name: str, work: Iterator[tuple[Any, ...]]
) -> Iterator[Any]:
    workers, count = [_Worker(process, name) for process in processes], len(processes)
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


class _Worker:
    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._work.put(name)
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
        _end(self._process)


def serve(work: IO[bytes], results: IO[bytes]) -> None:
    """A worker's life: it is given the name of a function, then pieces until its input ends."""
    try:
        call = function(_read(work))
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
