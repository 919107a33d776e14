"""Sample the Python stack of a thread from another thread.

A sample holds the GIL for some microseconds. A thread that computes in Python releases the GIL only
every 5 ms, or when it calls something that releases it, so the time that a sample waited is
recorded with it. No frame is ever stored: its variables would stay alive with it.
"""

import contextlib
import gc
import itertools
import json
import operator
import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from strobe.collect.journal import Journal
from strobe.collect.places import Line, is_users, line_of
from strobe.model.journal import NO_CORE_COUNTER, SAMPLE_WAIT_BITS, Mark

_SAMPLE = int(Mark.SAMPLE)
_COUNTER = int(Mark.COUNTER)

# The default period: within the first minute, it shows where 5% of the time goes.
PERIOD_NS = 25_000_000
# For a window of full recording, which is short and slows training anyway.
PERIOD_IN_WINDOW_NS = 5_000_000
# The longest period: a training that pauses for hours needs no more samples.
LONGEST_PERIOD_NS = 1_000_000_000

# The maximum cost of sampling, as a share of the time; the period is stretched to stay below it. A
# rate that is enough for a long training would give a short one too few samples, so the share
# shrinks after a while.
BUDGET_RATIO = 0.0005
EARLY_BUDGET_RATIO = 0.0015
EARLY_NS = 30_000_000_000
BUDGET_IN_WINDOW_RATIO = 0.005
# Assumed cost to the sampled thread in addition to the sample itself: it waits for the GIL and
# finds its caches disturbed.
SWITCH_NS = 15_000

# A stack is cut to its innermost frames, plus those outwards to the user's own.
INNERMOST_FRAMES = 20
MOST_FRAMES = 40
# Maximum number of stacks recorded completely; of later ones only the innermost function and the
# user's line are.
MOST_STACKS = 1_000
MOST_SHORT_STACKS = 1_000
OTHER = "[null, []]"

# Maximum number of frames examined: an unbounded recursion.
_DEEPEST = 2_000

# Maximum number of cached stacks; the cache is cleared when it is full.
_MOST_KNOWN = 4_000


# Whether creating an object may run the garbage collector immediately.
_COLLECTS_AT_ONCE = sys.version_info < (3, 12)

_current_frames, _ONCE = sys._current_frames, ((),)
_CODE, _PLACE = operator.attrgetter("f_code"), operator.attrgetter("f_lasti")


def stack_of(thread: int) -> list[FrameType]:
    """The frames of a thread, innermost first; none if it has ended.

    It is one call into C that never releases the GIL: otherwise the thread could continue between
    two accesses to its frames and leave us with invalid ones. Creating objects may start the
    garbage collector before Python 3.12, which calls Python (also ours, to time it) and so releases
    the GIL: the process then crashed about once in two hundred runs. So collection is disabled
    meanwhile.
    """
    is_collecting = _COLLECTS_AT_ONCE and gc.isenabled()
    frames: list[Any] = []
    if is_collecting:
        gc.disable()
    try:
        innermost = map(operator.itemgetter(thread), itertools.starmap(_current_frames, _ONCE))
        backs = itertools.repeat("f_back", _DEEPEST)
        all_of_it = itertools.accumulate(itertools.chain(innermost, backs), getattr)
        # After the outermost frame comes None.
        frames.extend(itertools.takewhile(operator.truth, all_of_it))
    except KeyError:  # the thread does not exist
        pass
    finally:
        if is_collecting:
            gc.enable()
    return frames


class Stacks:
    """Stacks as numbers of the journal; each is recorded once."""

    def __init__(self, string: Callable[[str, str], int]) -> None:
        """`string(kind, text)` returns the number of a text."""
        self._string = string
        # By their code objects and instructions, which are cheaper to get than lines.
        self._known: dict[tuple[int, ...], int] = {}
        self._codes: dict[int, CodeType] = {}  # kept alive, so that their addresses are not reused
        self._told: set[str] = set()
        self.is_new = False  # whether the last one was new

    def number(self, frames: list[FrameType]) -> int:
        """The number of the stack of these frames, innermost first."""
        key = (*map(id, map(_CODE, frames)), *map(_PLACE, frames))
        known = self._known.get(key)
        self.is_new = known is None
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
                self._codes.clear()
            known = self._known[key] = self._tell(frames)
        return known

    def _tell(self, frames: list[FrameType]) -> int:
        lines: list[Line] = []
        users = main = None
        for depth, frame in enumerate(frames):
            code = frame.f_code
            self._codes[id(code)] = code
            is_own = is_users(code.co_filename)
            if (is_own or depth < INNERMOST_FRAMES) and len(lines) < MOST_FRAMES:
                if is_own and users is None:
                    users = len(lines)
                lines.append(line_of(frame))
            if main is None and frame.f_globals.get("__name__") == "__main__":
                main = line_of(frame)
        if users is None and main is not None:  # all code is installed: python -m package.train
            lines = [line for line in lines if line != main] + [main]
            users = len(lines) - 1
        if len(self._told) >= MOST_STACKS:
            lines = [lines[0], lines[users]] if users else lines[:1]
            users = len(lines) - 1 if users is not None else None
        text = json.dumps([users, lines], ensure_ascii=False)
        if text not in self._told and len(self._told) >= MOST_STACKS + MOST_SHORT_STACKS:
            text = OTHER
        self._told.add(text)
        return self._string("stack", text)


class StackSampler:
    """Samples one thread until it is stopped."""

    def __init__(
        self,
        journal: Journal,
        guarded: Callable[[Any], Any],
        is_window: Callable[[], bool] = lambda: False,
        thread: int | None = None,
    ) -> None:
        """`guarded` wraps a function so that it never raises; `thread` is the current one by
        default.
        """
        self._journal, self._is_window = journal, is_window
        self._watched = threading.get_ident() if thread is None else thread
        self._stacks = Stacks(journal.string)
        self._no_core = journal.string("counter", NO_CORE_COUNTER)
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self._is_stopped = False
        self._cost_ns = 0.0
        self._began_ns = time.monotonic_ns()
        self._chance = self._began_ns & 0xFFFF
        self._thread = threading.Thread(
            target=guarded(self._work), name="strobe-stacks", daemon=True
        )

    def start(self) -> None:
        if not is_possible():
            return
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped = True
        with contextlib.suppress(RuntimeError):  # stopped twice before the thread ended
            self._asleep.release()

    def _work(self) -> None:
        with BusyTime(self._watched) as busy:
            self._look_on(busy)

    def _look_on(self, busy: "BusyTime") -> None:
        cost_ns = time.thread_time_ns()
        while not self._is_stopped:
            period_ns = self._period_ns()
            wanted_ns = time.monotonic_ns() + period_ns
            self._asleep.acquire(timeout=period_ns / 1e9)
            if self._is_stopped or not self._look(wanted_ns, busy):
                return
            before_ns, cost_ns = cost_ns, time.thread_time_ns()
            if not self._stacks.is_new:  # recording a new stack takes longer, but there are few
                # The mean of about the last eight samples.
                self._cost_ns += (cost_ns - before_ns - self._cost_ns) / 8

    def _look(self, wanted_ns: int, busy: "BusyTime") -> bool:
        """False if the thread has ended."""
        now_ns = time.monotonic_ns()
        frames = stack_of(self._watched)
        if not frames:
            return False
        number = self._stacks.number(frames)
        del frames
        waited_us = max(0, now_ns - wanted_ns) // 1000
        value = busy.ns() // 1000 << SAMPLE_WAIT_BITS | min(waited_us, (1 << SAMPLE_WAIT_BITS) - 1)
        self._journal.mark(_SAMPLE, number, value, now_ns)
        if busy.no_core_ns is not None:
            self._journal.mark(_COUNTER, self._no_core, busy.no_core_ns, now_ns)
        return True

    def _period_ns(self) -> int:
        """Randomized: samples in phase with the training steps would always hit the same place."""
        if self._is_window():
            shortest, budget = PERIOD_IN_WINDOW_NS, BUDGET_IN_WINDOW_RATIO
        else:
            early = EARLY_NS / max(EARLY_NS, time.monotonic_ns() - self._began_ns)
            shortest, budget = PERIOD_NS, max(BUDGET_RATIO, EARLY_BUDGET_RATIO * early)
        period = max(shortest, (self._cost_ns + SWITCH_NS) / budget)
        # Our own generator: that of the module random belongs to the training.
        self._chance = (self._chance * 1103515245 + 12345) & 0x7FFFFFFF
        chance = self._chance / 0x7FFFFFFF  # 0 to 1
        return int(min(period, LONGEST_PERIOD_NS) * (0.5 + chance))


class BusyTime:
    """How long a thread was running or ready to run: all its time except waits."""

    def __init__(self, thread: int) -> None:
        self.no_core_ns: int | None = None  # as of the last call: ready to run, but without a core
        self._clock: int | None = None
        self._handle: int | None = None
        native = (one.native_id for one in threading.enumerate() if one.ident == thread)
        try:
            path = f"/proc/self/task/{next(native)}/schedstat"
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        # not supported on this system: the time without a core is unknown
        except (OSError, StopIteration):
            self._clock = _cpu_clock(thread)

    def __enter__(self) -> "BusyTime":
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def ns(self) -> int:
        """0 if unknown."""
        try:
            if self._handle is not None:
                running, ready, _ = os.pread(self._handle, 128, 0).split()
                self.no_core_ns = int(ready)
                return int(running) + self.no_core_ns
            return time.clock_gettime_ns(self._clock) if self._clock is not None else 0
        except (OSError, ValueError):  # the thread has just ended
            return 0


def is_possible() -> bool:
    """Without a GIL, frames change while they are read."""
    has_gil: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return has_gil()


def _cpu_clock(thread: int) -> int | None:
    try:
        return time.pthread_getcpuclockid(thread)
    except (AttributeError, OSError):  # not supported on this system
        return None
