"""Look now and then at what Python is doing in a thread, from a thread of its own.

A look takes Python's lock (the GIL) for some microseconds. A thread that computes in Python gives
the lock up only every 5 ms, or where it calls something that releases it: how long a look had to
wait is recorded with it. No frame is ever kept: its variables would live on with it.
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

# Looks so far apart tell where 5 % of the time goes within the first minute of a training.
PERIOD_NS = 25_000_000
# In a window of full recording, which is short and slows training anyway.
PERIOD_IN_WINDOW_NS = 5_000_000
# Past this the same stacks come again; a training that pauses for hours need not be looked at less.
LONGEST_PERIOD_NS = 1_000_000_000

# What looking may cost, as part of the time; the period is stretched until it holds. A short
# training would be seen too seldom at the rate that is enough for a long one: after a while, the
# part shrinks as the time grows.
BUDGET_RATIO = 0.0005
EARLY_BUDGET_RATIO = 0.0015
EARLY_NS = 30_000_000_000
BUDGET_IN_WINDOW_RATIO = 0.005
# Beside the time that a look takes itself, the thread that was looked at waits for the lock and
# finds its caches disturbed: assumed.
SWITCH_NS = 15_000

# A stack is cut to its innermost frames, and of those further out to the user's own.
INNERMOST_FRAMES = 20
MOST_FRAMES = 40
# Stacks told whole; of later ones only the innermost function and the user's line are told.
MOST_STACKS = 1_000
MOST_SHORT_STACKS = 1_000
OTHER = "[null, []]"

# Frames past so many are not looked at: a recursion gone wild.
_DEEPEST = 2_000

# Ways through the code that are known by heart; forgotten when there are too many.
_MOST_KNOWN = 4_000


# Whether making an object may run the garbage collector before it is made.
_COLLECTS_AT_ONCE = sys.version_info < (3, 12)

_current_frames, _ONCE = sys._current_frames, ((),)
_CODE, _PLACE = operator.attrgetter("f_code"), operator.attrgetter("f_lasti")


def stack_of(thread: int) -> list[FrameType]:
    """The frames of a thread, the innermost first; none if it has ended.

    All of it is one call into C, in which Python's lock is not given up: a thread that went on
    between two looks at its frames would leave us with frames that are no more. Each look makes
    objects, and before Python 3.12 that may set off the garbage collector on the spot, which calls
    Python (ours too, to time it) and so gives the lock up in the middle of the look: the process
    then crashed, once in some two hundred. So it is kept from it meanwhile.
    """
    is_collecting = _COLLECTS_AT_ONCE and gc.isenabled()
    frames: list[Any] = []
    if is_collecting:
        gc.disable()
    try:
        innermost = map(operator.itemgetter(thread), itertools.starmap(_current_frames, _ONCE))
        backs = itertools.repeat("f_back", _DEEPEST)
        all_of_it = itertools.accumulate(itertools.chain(innermost, backs), getattr)
        # Past the outermost frame comes None.
        frames.extend(itertools.takewhile(operator.truth, all_of_it))
    except KeyError:  # the thread is not there
        pass
    finally:
        if is_collecting:
            gc.enable()
    return frames


class Stacks:
    """Stacks as numbers of the journal; each is told once."""

    def __init__(self, string: Callable[[str, str], int]) -> None:
        """`string(kind, text)` gives a text its number."""
        self._string = string
        # By the code objects and places in them, which are cheaper to get than lines.
        self._known: dict[tuple[int, ...], int] = {}
        self._codes: dict[int, CodeType] = {}  # kept, so that no other comes to their address
        self._told: set[str] = set()
        self.is_new = False  # whether the last one was

    def number(self, frames: list[FrameType]) -> int:
        """Of the stack of these frames, the innermost first."""
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
    """Looks at one thread until it is stopped."""

    def __init__(
        self,
        journal: Journal,
        guarded: Callable[[Any], Any],
        is_window: Callable[[], bool] = lambda: False,
        thread: int | None = None,
    ) -> None:
        """`guarded` makes a function that never raises; `thread` is this one unless told."""
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
        with contextlib.suppress(RuntimeError):  # stopped twice, and still on its way to the end
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
            if not self._stacks.is_new:  # telling a stack takes longer, but there are few of them
                # The mean of about the last eight.
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
        """With chance in it: looks in step with the training's steps would see one place only."""
        if self._is_window():
            shortest, budget = PERIOD_IN_WINDOW_NS, BUDGET_IN_WINDOW_RATIO
        else:
            early = EARLY_NS / max(EARLY_NS, time.monotonic_ns() - self._began_ns)
            shortest, budget = PERIOD_NS, max(BUDGET_RATIO, EARLY_BUDGET_RATIO * early)
        period = max(shortest, (self._cost_ns + SWITCH_NS) / budget)
        # Numbers of our own: the generator of the module random is the training's.
        self._chance = (self._chance * 1103515245 + 12345) & 0x7FFFFFFF
        chance = self._chance / 0x7FFFFFFF  # 0 to 1
        return int(min(period, LONGEST_PERIOD_NS) * (0.5 + chance))


class BusyTime:
    """How long a thread has computed, or would have, had a core been free: all but its waits."""

    def __init__(self, thread: int) -> None:
        self.no_core_ns: int | None = None  # of what was last asked for: ready, but without a core
        self._clock: int | None = None
        self._handle: int | None = None
        native = (one.native_id for one in threading.enumerate() if one.ident == thread)
        try:
            path = f"/proc/self/task/{next(native)}/schedstat"
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, StopIteration):  # not on this system: what others took is then unknown
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
    """Without a GIL, frames change under the eyes that look at them."""
    has_gil: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return has_gil()


def _cpu_clock(thread: int) -> int | None:
    try:
        return time.pthread_getcpuclockid(thread)
    except (AttributeError, OSError):  # not on this system
        return None
