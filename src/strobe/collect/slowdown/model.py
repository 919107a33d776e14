"""Do steps get slower than noise explains? A model of step times that takes one step at a time.

The normal step time is learned from the first steps after warm-up: their median, and their spread
as the median absolute deviation, which single slow steps do not move. Three things are detected: a
spike, one step far above normal; a rhythm, spikes at equal distances, so that the next one can be
predicted; a drift, when recent steps are slower as a whole. After a drift, the normal step time is
learned again.
"""

import statistics
from collections import deque
from dataclasses import dataclass

from strobe.units import duration

# Allocators, caches and compilers settle in the first steps.
_WARM_UP_STEPS = 10
# This many steps give a median within a quarter of their spread, and a spread within a tenth.
_LEARNED_STEPS = 50
# Number of normal steps from which the limit for a spike is updated as training goes on.
_REMEMBERED_STEPS = 256
# Number of recent steps whose median counts as current: few enough to react soon, too many for a
# spike to matter.
_RECENT_STEPS = 20

# The standard deviation of a normal distribution is this many times its median deviation.
_DEVIATIONS = 1.4826
# Lower limit of the spread: clocks and schedulers alone cause that much.
_LEAST_SPREAD_RATIO = 0.02
_LEAST_SPREAD_NS = 200_000

# A normal step is 8 spreads slow once in 10^15. Steps are not normally distributed, so a spike must
# also be half as long again, and well above the previous slow steps (the slowest may be chance, so
# the second slowest counts).
_SPIKE_SPREADS = 8
_SPIKE_RATIO = 1.5
_BEYOND_SLOW_RATIO = 1.25
# Machines that are shared, or run hot, vary by a tenth.
_DRIFT_RATIO = 1.2
_DRIFT_SPREADS = 4

# Spikes have a rhythm if their distances are equal within this tolerance and at least this long.
_RHYTHM_TOLERANCE_STEPS = 1
_RHYTHM_LEAST_STEPS = 4

# Steps per window: enough for averages; around a predicted spike.
WINDOW_STEPS = 5
_RHYTHM_WINDOW_STEPS = 3


@dataclass(frozen=True)
class Reason:
    """Why to record a window. `start` is None for: now."""

    kind: str  # spike, rhythm, drift
    why: str
    steps: int = WINDOW_STEPS
    start: int | None = None


class StepTimes:
    def __init__(self) -> None:
        self._left = _WARM_UP_STEPS
        self._learned: list[int] = []
        self._normal: deque[int] = deque(maxlen=_REMEMBERED_STEPS)
        self._recent: deque[int] = deque(maxlen=_RECENT_STEPS)
        self._spikes: list[int] = []
        self._usual_ns = self._spread_ns = 0.0
        self._learned_at = (0, 0)

    @property
    def usual_ns(self) -> int | None:
        """The normal duration of a step, once it is known."""
        return round(self._usual_ns) if self._usual_ns else None

    def skip(self) -> None:
        """A step that was recorded in full and says nothing."""
        self._recent.clear()

    def see(self, step: int, dur_ns: int) -> Reason | None:
        """Add the next step; returns a reason for a window, if there is one."""
        if self._left > 0:
            self._left -= 1
            return None
        if not self._usual_ns:
            self._learn(step, dur_ns)
            return None
        self._recent.append(dur_ns)
        drift = self._drift(step)
        if drift is not None:
            return drift
        if dur_ns > self._spike_limit_ns():
            return self._spike(step, dur_ns)
        self._normal.append(dur_ns)
        return None

    def _learn(self, step: int, dur_ns: int) -> None:
        if not self._learned:
            self._learned_at = step, step
        self._learned.append(dur_ns)
        if len(self._learned) < _LEARNED_STEPS:
            return
        usual = statistics.median(self._learned)
        deviation = statistics.median(abs(each - usual) for each in self._learned)
        least = max(_LEAST_SPREAD_NS, _LEAST_SPREAD_RATIO * usual)
        self._usual_ns, self._spread_ns = usual, max(least, _DEVIATIONS * deviation)
        self._learned_at = self._learned_at[0], step
        self._normal.clear()
        self._normal.extend(self._learned)
        self._learned.clear()

    def _learn_again(self) -> None:
        self._usual_ns = 0.0
        self._learned.clear()
        self._recent.clear()
        self._spikes.clear()

    def _spike_limit_ns(self) -> float:
        second = sorted(self._normal)[-2]
        return max(
            self._usual_ns + _SPIKE_SPREADS * self._spread_ns,
            _SPIKE_RATIO * self._usual_ns,
            _BEYOND_SLOW_RATIO * second,
        )

    def _drift(self, step: int) -> Reason | None:
        if len(self._recent) < _RECENT_STEPS:
            return None
        now = statistics.median(self._recent)
        beyond = _DRIFT_SPREADS * self._spread_ns
        if now < self._usual_ns / _DRIFT_RATIO and now < self._usual_ns - beyond:
            self._learn_again()  # faster steps are not a problem
            return None
        if now < self._usual_ns * _DRIFT_RATIO or now < self._usual_ns + beyond:
            return None
        first, last = self._learned_at
        why = (
            f"steps became slower: the median is {duration(round(now))} (steps "
            f"{step - _RECENT_STEPS + 1} to {step}), and was {duration(round(self._usual_ns))} "
            f"(steps {first} to {last})"
        )
        self._learn_again()
        return Reason("drift", why)

    def _spike(self, step: int, dur_ns: int) -> Reason | None:
        is_next = bool(self._spikes) and step == self._spikes[-1] + 1
        self._spikes = [*self._spikes[-2:], step]
        if is_next:  # consecutive: the first was already reported, and if it lasts it is a drift
            self._spikes.pop()
            return None
        took, usual = duration(dur_ns), duration(round(self._usual_ns))
        distance = self._rhythm()
        if distance is not None:
            why = f"every {distance} steps, one is slow: step {step} took {took}, others {usual}"
            return Reason("rhythm", why, _RHYTHM_WINDOW_STEPS, step + distance - 1)
        return Reason("spike", f"step {step} took {took} instead of {usual}")

    def _rhythm(self) -> int | None:
        if len(self._spikes) < 3:
            return None
        first, second, third = self._spikes
        before, distance = second - first, third - second
        if abs(distance - before) > _RHYTHM_TOLERANCE_STEPS or distance < _RHYTHM_LEAST_STEPS:
            return None
        return distance
