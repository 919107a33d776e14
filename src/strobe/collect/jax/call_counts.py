"""Programs that accumulate gradients internally: which of their calls update?

optax.MultiSteps keeps two small counters in its state, which is passed into and out of the program:
calls since the last update, and updates. They are read when the results are ready. If the state is
donated to the next call before that, calls are counted instead: the number of calls per update is
learned from the first ones, for which the script then has to wait, and from each that can be read.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

# The fields of optax's MultiStepsState.
_CALLS, _UPDATES = "mini_step", "gradient_step"
# The script is blocked for this many calls at most: an update is hardly made of more.
_MOST_OPEN = 128

Way = Callable[[Any], Any]


class Reading(NamedTuple):
    calls: int  # since the last update
    updates: int


class Counts:
    """The counters in the state of one program."""

    def __init__(self, calls: Way, updates: Way) -> None:
        self._ways = calls, updates
        # The counters after the last call, as far as they are known; and calls per update.
        self._last: Reading | None = None
        self._is_sure = False  # it was read, not predicted
        self._each = 0
        # Calls of which it is still unknown whether they updated; and the total number of calls.
        self._open: list[tuple[int, Any]] = []
        self._taken = 0
        self._has_given_up = False

    def arrays(self, out: Any) -> tuple[Any, Any]:
        calls, updates = self._ways
        return calls(out), updates(out)

    @property
    def is_open(self) -> bool:
        """Whether the counters must be read immediately, before the next call takes them."""
        return bool(self._open)

    def take(self, call: Any) -> None:
        """Add the next call, with its `reading` if it could be read.

        Sets its `updates`, in some cases only once later calls have been added.
        """
        self._taken += 1
        foreseen, last = self._foreseen(), self._last
        reading = self._last = call.reading or foreseen
        if self._open and self._taken - self._open[0][0] >= _MOST_OPEN:
            self._has_given_up = True
            self._open.clear()
        if reading is None:
            if not self._has_given_up:
                self._open.append((self._taken, call))
        elif last is not None and (self._is_sure or reading == foreseen):
            call.updates = reading.updates != last.updates
            if call.updates:
                self._each = last.calls + 1
        else:
            call.updates = reading.calls == 0 < reading.updates
            self._each = 0  # unknown, or changed by a schedule
        self._is_sure = call.reading is not None
        if self._open and self._each and reading is not None:
            self._close(reading)

    def _foreseen(self) -> Reading | None:
        last, each = self._last, self._each
        if last is None or not each:
            return None
        is_update = last.calls + 1 >= each
        return Reading(0 if is_update else last.calls + 1, last.updates + is_update)

    def _close(self, now: Reading) -> None:
        for number, call in self._open:
            call.updates = (now.calls - (self._taken - number)) % self._each == 0
        self._open.clear()


def find_counters(paths: list[tuple[str, ...]]) -> tuple[int, int] | None:
    """The positions of the counters among arrays with these path names."""
    places = {names: place for place, names in enumerate(paths)}
    for names, place in places.items():
        if _CALLS in names:
            at = names.index(_CALLS)
            other = places.get((*names[:at], _UPDATES, *names[at + 1 :]))
            if other is not None:
                return place, other
    return None
