"""The numbers that were logged under a tag, as lines of points over steps and over time.

Over steps, a step has one point: the one that was logged last. After a resume, the points of a
later attempt replace those of earlier attempts from its first step on. Over time, every point that
has a time is there. What a line leaves out is counted, and stays in the table `scalars`.
"""

from typing import Any, NamedTuple

import numpy as np

from strobe.store.array_file import Array
from strobe.store.nullable import UNKNOWN


class Points(NamedTuple):
    """In the order in which they were logged."""

    step: Array
    ts_ns: Array
    value: Array

    def at(self, rows: Any) -> "Points":
        return Points(*(column[rows] for column in self))

    @property
    def length(self) -> int:
        return len(self.value)


class Logged(NamedTuple):
    """The points of a tag, or of one attempt of it, with what the lines leave out of them."""

    by_step: Points
    by_time: Points
    logged: int
    without_step: int
    without_time: int
    repeated: int  # their step was logged again in the same attempt
    backward: int  # their step is smaller than one that was logged before
    superseded: int  # a later attempt logged their step, or an earlier one, again

    @property
    def facts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self._fields[2:]}


def of_attempt(points: Points) -> Logged:
    has_step, has_time = points.step != UNKNOWN, points.ts_ns != UNKNOWN
    stepped = points if has_step.all() else points.at(has_step)
    growth = np.diff(stepped.step)
    backward = 0
    by_step = stepped
    if (growth <= 0).any():
        order = np.argsort(stepped.step, kind="stable")
        is_last = np.append(np.diff(stepped.step[order]) != 0, True)
        by_step = stepped.at(order[is_last])
        reached = np.maximum.accumulate(stepped.step)
        backward = int((stepped.step[1:] < reached[:-1]).sum())
    timed = points if has_time.all() else points.at(has_time)
    if (np.diff(timed.ts_ns) < 0).any():
        timed = timed.at(np.argsort(timed.ts_ns, kind="stable"))
    return Logged(
        by_step,
        timed,
        logged=points.length,
        without_step=points.length - stepped.length,
        without_time=points.length - timed.length,
        repeated=stepped.length - by_step.length,
        backward=backward,
        superseded=0,
    )


def over_attempts(attempts: list[Logged]) -> Logged:
    """All attempts of a tag, the first one first, as one line over steps and one over time."""
    if len(attempts) == 1:
        return attempts[0]
    parts: list[Points] = []
    first_later = np.iinfo(np.int64).max
    for attempt in reversed(attempts):
        step = attempt.by_step.step
        parts.insert(0, attempt.by_step.at(slice(int(np.searchsorted(step, first_later)))))
        if len(step):
            first_later = min(first_later, int(step[0]))
    by_step = _joined(parts)
    by_time = _joined([attempt.by_time for attempt in attempts])
    if (np.diff(by_time.ts_ns) < 0).any():
        by_time = by_time.at(np.argsort(by_time.ts_ns, kind="stable"))
    superseded = sum(attempt.by_step.length for attempt in attempts) - by_step.length
    sums = {
        name: sum(getattr(attempt, name) for attempt in attempts) for name in Logged._fields[2:]
    }
    return Logged(by_step, by_time, **{**sums, "superseded": superseded})


def _joined(parts: list[Points]) -> Points:
    return Points(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
