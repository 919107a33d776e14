"""Wait for results one after the other, and record when each was ready, without Python in between.

The thread is woken at the end of every step, when its code has left the processor's caches, and
each line that Python interprets takes a microsecond or more. So all of it is one chain of functions
written in C, which ends when it is time to process the results.
"""

import contextlib
import itertools
import operator
from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import Any

from strobe.collect.steps import StepCount

# Whether to continue, when the turn of an array came, the array, the array again, and when it was
# ready.
Found = tuple[Any, int, Any, Any, int]

# An array that took no longer than this was (almost) ready when its turn came: the thread had been
# woken late for the one before it. Checking each would cost more.
_AT_ONCE_NS = 100_000

_is_watched: Callable[[StepCount], bool] = operator.attrgetter("is_watched")
_is_ready: Callable[[Any], bool] = operator.methodcaller("is_ready")


class Waits:
    def __init__(self, steps: StepCount) -> None:
        self._steps = steps
        # How to wait for an array without recording a wait.
        self.wait: Callable[[Any], Any] = operator.methodcaller("block_until_ready")
        # What to wait for: other threads add to it meanwhile.
        self.leaves: list[Any] = []

    def one(self) -> list[Found]:
        """The first, and those after it that are ready as well: this thread may have waited long
        for the GIL.
        """
        are_there = map(_is_ready, itertools.islice(self.leaves, 1, None))
        return self._found(itertools.takewhile(operator.truth, are_there), _moments())

    def until(self, until_ns: int) -> list[Found]:
        """All in turn, but none past this moment, nor while a window may begin or end."""
        are_watched = map(_is_watched, itertools.repeat(self._steps))
        moments = itertools.takewhile(until_ns.__gt__, _moments())
        return self._found(itertools.takewhile(operator.not_, are_watched), moments)

    def _found(self, may_go_on: Iterator[Any], moments: Iterator[int]) -> list[Found]:
        """None if the first was donated to the next step, or failed."""
        leaves, found = self.leaves, list[Found]()
        # The first is waited for however late it is.
        go_on, moments = itertools.chain((True,), may_go_on), itertools.chain((0,), moments)
        try:
            found.extend(
                zip(go_on, moments, leaves, map(self.wait, leaves), _moments(), strict=False)
            )
        except Exception:
            failed, now_ns = leaves[len(found)], monotonic_ns()
            with contextlib.suppress(RuntimeError):  # any other error is unknown
                _is_ready(failed)
            if found:
                found.append((True, now_ns, failed, failed, now_ns))
        del leaves[: len(found) or 1]
        return found


def together(found: list[Found]) -> Iterator[tuple[int, list[Any]]]:
    """When arrays were found to be ready, and which."""
    now_ns, leaves = 0, list[Any]()
    for _, turn_ns, leaf, _, then_ns in found:
        if leaves and then_ns - turn_ns > _AT_ONCE_NS:
            yield now_ns, leaves
            leaves = []
        now_ns = now_ns if leaves else then_ns
        leaves.append(leaf)
    if leaves:
        yield now_ns, leaves


def _moments() -> Iterator[int]:
    return itertools.starmap(monotonic_ns, itertools.repeat(()))
