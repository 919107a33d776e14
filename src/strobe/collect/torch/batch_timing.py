"""The time a thread spends on a batch of data: clocks at its beginning, its collating and its end.

This runs at every training step, so it uses few instructions: each clock is read once, and what
costs microseconds is done only if it shows something.
"""

import contextlib
import os
import threading
import time

from strobe.model.journal import (
    SHORT_BATCH_BITS,
    SHORT_BATCH_FIRST_BIT,
    SHORT_WAIT_NS,
    Figure,
)

# Plain numbers: looking up a member of an enum costs as much as writing the mark.
_FETCH_NS = int(Figure.FETCH_NS)
_FETCH_CPU_NS = int(Figure.FETCH_CPU_NS)
_FETCH_QUEUED_NS = int(Figure.FETCH_QUEUED_NS)
_COLLATE_NS = int(Figure.COLLATE_NS)

_SHORT_NS = 1 << SHORT_BATCH_BITS
_OFF_CORE_SHIFT = SHORT_BATCH_FIRST_BIT + SHORT_BATCH_BITS
_COLLATE_SHIFT = _OFF_CORE_SHIFT + SHORT_BATCH_BITS

# Reading the time without a core takes ten microseconds, and thirty if the model has just emptied
# the caches: too much for every step. The value is cumulative, so nothing is lost by reading it
# less often, and the stack sampler reads it too. Before each batch it is read only for a loader
# whose last batch was off the processor: for those it must be known whether a core was available.
_LOOK_AGAIN_NS = 20_000_000
_LOOK_SELDOM_NS = 200_000_000

_monotonic_ns, _thread_time_ns = time.monotonic_ns, time.thread_time_ns


class Timing:
    """When a thread began a batch, began to collate it and finished it."""

    __slots__ = (
        "_began_cpu_ns", "_fetched_cpu_ns", "_fetched_ns", "_no_core", "_queued_ns",
        "began_ns", "done_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self._no_core = _of_thread.no_core or _new_of_thread()
        self.began_ns = self.done_ns = self._fetched_ns = self._began_cpu_ns = 0

    def look(self) -> int | None:
        """Before a batch: how long this thread was ready to run without a core since it started;
        None if that was read recently, or is unknown.
        """
        now_ns, no_core = _monotonic_ns(), self._no_core
        if now_ns - no_core.asked_ns < (_LOOK_AGAIN_NS if no_core.was_off else _LOOK_SELDOM_NS):
            return None
        return no_core.look(now_ns)

    def look_anyway(self) -> None:
        """The same where microseconds do not matter: the figures of the batch are then exact."""
        self._no_core.look(_monotonic_ns())

    def begin(self) -> None:
        self._fetched_ns = self.done_ns = 0
        self.began_ns, self._began_cpu_ns = _monotonic_ns(), _thread_time_ns()

    def collate(self) -> None:
        self._fetched_ns, self._fetched_cpu_ns = _monotonic_ns(), _thread_time_ns()
        self._queued_ns = None
        # If it was hardly off the processor, a core was available.
        off_ns = self._fetched_ns - self.began_ns - self._fetched_cpu_ns + self._began_cpu_ns
        no_core = self._no_core
        no_core.was_off = off_ns > SHORT_WAIT_NS
        if no_core.was_off:
            before_ns, now_ns = no_core.last_ns, no_core.look(self._fetched_ns)
            if now_ns is not None and before_ns is not None:
                self._queued_ns = min(now_ns - before_ns, off_ns)

    def end(self) -> None:
        if not self._fetched_ns:  # a loader without a collate function fetches until the end
            self.collate()
            self.done_ns = self._fetched_ns
        else:
            self.done_ns = _monotonic_ns()

    def on_and_without_core(self) -> tuple[int, int]:
        """CPU time until the batch was fetched, and time ready to run without a core."""
        return self._fetched_cpu_ns - self._began_cpu_ns, self._queued_ns or 0

    def packed(self) -> int:
        """The value of the mark for a short batch that is done; otherwise 0."""
        fetch_ns = self._fetched_ns - self.began_ns
        collate_ns = self.done_ns - self._fetched_ns
        if fetch_ns >= _SHORT_NS or collate_ns >= _SHORT_NS or self._queued_ns is not None:
            return 0
        off_ns = fetch_ns - self._fetched_cpu_ns + self._began_cpu_ns
        if off_ns < 0:  # two clocks, read one after the other
            off_ns = 0
        return (
            collate_ns << _COLLATE_SHIFT | off_ns << _OFF_CORE_SHIFT
            | fetch_ns << SHORT_BATCH_FIRST_BIT | 1
        )  # fmt: skip

    def figures(self) -> list[tuple[int, int]]:
        """The figures of a batch that is done."""
        fetched_ns = self._fetched_ns
        figures = [
            (_FETCH_NS, fetched_ns - self.began_ns),
            (_FETCH_CPU_NS, self._fetched_cpu_ns - self._began_cpu_ns),
            (_COLLATE_NS, self.done_ns - fetched_ns),
        ]
        if self._queued_ns is not None:
            figures.append((_FETCH_QUEUED_NS, self._queued_ns))
        return figures


class _NoCore:
    """How long this thread was ready to run and had to wait for a core, as Linux reports it."""

    def __init__(self) -> None:
        self._handle: int | None = None
        with contextlib.suppress(OSError):
            self._handle = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self.last_ns: int | None = None
        self.asked_ns = 0
        self.was_off = True  # whether the last batch was off the processor for long

    def look(self, now_ns: int) -> int | None:
        self.asked_ns = now_ns
        if self._handle is None:
            return None
        try:
            self.last_ns = int(os.pread(self._handle, 64, 0).split()[1])
        # an unknown kernel, or the script closed all files
        except (OSError, ValueError, IndexError):
            self._handle = self.last_ns = None
        return self.last_ns

    def __del__(self) -> None:
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.close(self._handle)


class _OfThread(threading.local):
    no_core: _NoCore | None = None


_of_thread = _OfThread()


def _new_of_thread() -> _NoCore:
    _of_thread.no_core = made = _NoCore()
    return made


def _forget_in_child() -> None:
    """A forked child's first thread inherits its parent's variables, but not its clocks."""
    _of_thread.no_core = None


os.register_at_fork(after_in_child=_forget_in_child)
