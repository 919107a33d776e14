"""The typical step of a run, its parts, and the confidence interval of the ratio of two.

The typical step is the mean of the middle half of the steps by length: as robust as a median, and
its parts still add up to it. Its noise is estimated by batches: the steps are cut into consecutive
batches, each with its own median, and the spread of the medians is the noise. Correlation between
neighbouring steps and phases of a busy machine widen it, as they should. Two runs of the same
script also differ in ways that the steps of one run cannot show, so that is added.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.analyse.tables.steps import steps
from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]

# With fewer steps, their noise cannot be estimated.
LEAST_STEPS = 4
# Enough batches for an interval, and few enough that neighbours differ by more than chance.
BATCHES = 8
# The same script is a little faster or slower every time: memory layout, clock, neighbours. One
# standard deviation, as a ratio.
RUN_TO_RUN_RATIO = 0.015

# Student's t for a two-sided 95% interval, by degrees of freedom; 14 is twice eight batches.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)

# The parts that tile a step; waiting for data is not included in the gap here.
PARTS = ("data", "gap", "forward", "backward", "all_reduce", "update", "rest")

_SQL = f"""
    SELECT step, avg(dur_ns - recorder_ns) AS step_ns, avg(data_ns) AS data_ns,
           avg(gap_ns - data_ns) AS gap_ns, avg(forward_ns) AS forward_ns,
           avg(backward_ns) AS backward_ns, avg(all_reduce_ns) AS all_reduce_ns,
           avg(update_ns) AS update_ns, avg(rest_ns) AS rest_ns
    FROM ({steps.COUNTED}) GROUP BY step ORDER BY step
"""


@dataclass(frozen=True)
class TypicalStep:
    """The typical step of one run: its length and parts, in whole nanoseconds that add up."""

    step_ns: int
    parts_ns: dict[str, int]
    mean_ns: int  # of all steps, long ones included
    steps: int
    noise_ratio: float | None  # standard error of its logarithm; null with too few steps
    batches: int


@dataclass(frozen=True)
class Interval:
    """A ratio and its 95% confidence interval."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def is_known(self) -> bool:
        return self.low is not None


def typical_step(run: Run) -> TypicalStep | None:
    """Over all ranks: each step is the average of theirs. None without steps."""
    steps.prepare(run)
    found = {name: np.asarray(column) for name, column in run.sql(_SQL).fetchnumpy().items()}
    lengths = found["step_ns"]
    if not len(lengths):
        return None
    order = np.argsort(lengths, kind="stable")
    cut = len(order) // 4
    middle = order[cut : len(order) - cut]
    exact = {part: float(found[f"{part}_ns"][middle].mean()) for part in PARTS}
    step_ns = round(float(lengths[middle].mean()))
    noise, batches = _noise(lengths)
    return TypicalStep(
        step_ns=step_ns,
        parts_ns=_adding_up(exact, step_ns),
        mean_ns=round(float(lengths.mean())),
        steps=len(lengths),
        noise_ratio=noise,
        batches=batches,
    )


def _noise(lengths: Array) -> tuple[float | None, int]:
    """Standard error of the logarithm of a typical step, estimated by batches."""
    count = min(BATCHES, len(lengths))
    if count < LEAST_STEPS:
        return None, count
    medians = [float(np.median(batch)) for batch in np.array_split(lengths, count)]
    logs = np.log(np.maximum(medians, 1.0))
    return float(logs.std(ddof=1)) / math.sqrt(count), count


def _adding_up(exact: dict[str, float], total: int) -> dict[str, int]:
    """Rounded so that the parts still add up: the longest takes the rounding error."""
    rounded = {name: round(value) for name, value in exact.items()}
    longest = max(exact, key=lambda name: exact[name])
    rounded[longest] += total - sum(rounded.values())
    return rounded


def interval(a: TypicalStep, b: TypicalStep) -> Interval:
    """B's typical step over A's; 1.2 means 20% slower."""
    ratio = b.step_ns / max(1, a.step_ns)
    if a.noise_ratio is None or b.noise_ratio is None:
        return Interval(ratio, None, None)
    noise = math.sqrt(a.noise_ratio**2 + b.noise_ratio**2 + RUN_TO_RUN_RATIO**2)
    reach = math.exp(student(a.batches + b.batches - 2) * noise)
    return Interval(ratio, ratio / reach, ratio * reach)


def student(freedom: int) -> float:
    """Standard errors on each side of a 95% confidence interval, by degrees of freedom."""
    return _STUDENT[min(freedom, len(_STUDENT)) - 1]
