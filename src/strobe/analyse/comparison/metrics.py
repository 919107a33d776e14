"""How far did each run get: where do its metrics end, and when did it reach which level?

A run is not called better for one noisy value. The end of a curve is the median of its last 10% of
values, at least 5, and a difference counts if its 95% confidence interval excludes zero. When a
level is reached is read off the curve smoothed by the median of 2% of its values.

Levels are on the way from where both runs began to the worse one of their ends, which both reached.
The noise is that within the runs: what another random seed would change, one run cannot show.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.analyse.comparison.curves import (
    HIGHER,
    LOWER,
    Curve,
    Smoothed,
    better,
    curves,
    difference,
    end,
    first_at,
    smoothed,
)
from strobe.model.schema import Column, Table
from strobe.store.run import Run

# Shares of the way to the end that both reached.
PROGRESS = (0.5, 0.9, 1.0)
_ALL_OF_IT = PROGRESS[-1]

_FINAL = "Median of the last 10% of values"
METRICS = Table(
    "compare-metrics",
    "Where do the metrics that both runs logged end, and what was the best value of each?",
    (
        Column("tag", "str", "Name of the metric."),
        Column("better", "str", "lower or higher, as far as the name tells.", nullable=True),
        Column("a_final", "f64", f"{_FINAL} in the first run; null if most are NaN or infinite.",
               True),
        Column("b_final", "f64", f"{_FINAL} in the second run; null if most are NaN or infinite.",
               True),
        Column("difference", "f64", "Second final value minus first.", nullable=True),
        Column("difference_low", "f64", "Lower end of its 95% confidence interval; null with too "
               "few values.", True),
        Column("difference_high", "f64", "Upper end of its 95% confidence interval.", True),
        Column("is_different", "bool", "Whether the difference exceeds the noise within the runs; "
               "null if that is unknown.", True),
        Column("a_best", "f64", "Best single value of the first run, if the name tells what is "
               "best.", True),
        Column("a_best_step", "i64", "The step at which it was logged.", nullable=True),
        Column("b_best", "f64", "Best single value of the second run.", nullable=True),
        Column("b_best_step", "i64", "The step at which it was logged.", nullable=True),
        Column("a_last_step", "i64", "Last step that the first run logged it at."),
        Column("b_last_step", "i64", "Last step that the second run logged it at."),
        Column("a_values", "i64", "Number of steps at which the first run logged it."),
        Column("b_values", "i64", "Number of steps at which the second run logged it."),
        Column("a_not_finite", "i64", "How many of these values are NaN or infinite."),
        Column("b_not_finite", "i64", "The same for the second run."),
        Column("a_first_not_finite", "i64", "Step of the first NaN or infinite value.", True),
        Column("b_first_not_finite", "i64", "The same for the second run.", nullable=True),
    ),
)  # fmt: skip
LEVELS = Table(
    "compare-levels",
    "At which step, and after how much time, did each run reach which level of a metric?",
    (
        Column("tag", "str", "Name of the metric."),
        Column("progress", "f64", "How far on the way from the start of both runs to the end that "
               "both reached: 1 is that end."),
        Column("level", "f64", "The value of the metric there."),
        Column("a_step", "i64", "First step at which the smoothed curve of the first run is at "
               "least as good; null if it never is.", True),
        Column("b_step", "i64", "The same for the second run.", nullable=True),
        Column("a_ns", "i64", "Time since the first run began; null if unknown.", nullable=True),
        Column("b_ns", "i64", "Time since the second run began; null if unknown.", nullable=True),
    ),
)  # fmt: skip

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class MetricsCompared:
    """Rows of METRICS, losses first, and of LEVELS."""

    metrics: Rows
    levels: Rows


def compare_metrics(a: Run, b: Run) -> MetricsCompared:
    tags = _shared_tags(a, b)
    if not tags:
        return MetricsCompared([], [])
    of_a, of_b = curves(a, tags), curves(b, tags)
    ordered = sorted(tags, key=lambda tag: _order(tag, min(len(of_a[tag].value),
                                                           len(of_b[tag].value))))  # fmt: skip
    metrics = [_metric(tag, of_a[tag], of_b[tag]) for tag in ordered]
    levels = [row for tag in ordered for row in _levels(tag, of_a[tag], of_b[tag])]
    return MetricsCompared(metrics, levels)


def _shared_tags(a: Run, b: Run) -> list[str]:
    tags = [{tag for (tag,) in run.sql("SELECT DISTINCT tag FROM scalars").fetchall()}
            for run in (a, b)]  # fmt: skip
    return sorted(tags[0] & tags[1])


def _order(tag: str, values: int) -> tuple[bool, int, int, str]:
    """`loss` itself, other losses, what should be high, and the rest; longer curves first."""
    return tag != "loss", {LOWER: 0, HIGHER: 1, None: 2}[better(tag)], -values, tag


def _metric(tag: str, a: Curve, b: Curve) -> tuple[Any, ...]:
    direction, ends = better(tag), (end(a), end(b))
    change, low, high = difference(*ends)
    is_different = None if low is None or high is None else not low <= 0 <= high
    best_a, best_b = _best(a, direction), _best(b, direction)
    return (
        tag, direction, ends[0].level, ends[1].level, change, low, high, is_different,
        *best_a, *best_b, int(a.step[-1]), int(b.step[-1]), len(a.value), len(b.value),
        int(np.count_nonzero(~a.is_finite)), int(np.count_nonzero(~b.is_finite)),
        _first_not_finite(a), _first_not_finite(b),
    )  # fmt: skip


def _best(curve: Curve, direction: str | None) -> tuple[float | None, int | None]:
    """The best finite value, and its step."""
    places = np.flatnonzero(curve.is_finite)
    if direction is None or not len(places):
        return None, None
    values = curve.value[places]
    place = places[np.argmin(values) if direction == LOWER else np.argmax(values)]
    return float(curve.value[place]), int(curve.step[place])


def _first_not_finite(curve: Curve) -> int | None:
    places = np.flatnonzero(~curve.is_finite)
    return int(curve.step[places[0]]) if len(places) else None


def _levels(tag: str, a: Curve, b: Curve) -> Rows:
    direction = better(tag)
    if direction is None:
        return []
    sign = 1 if direction == LOWER else -1
    ends = [sign * found.level for each in (a, b) if (found := end(each)).level is not None]
    if not ends:
        return []
    runs = [(curve, smoothed(curve, direction == LOWER)) for curve in (a, b)]
    target, start = max(ends), max(float(found.value[0]) for _, found in runs)
    if not np.isfinite(start) or start <= target:
        return [_level(tag, _ALL_OF_IT, sign, target, runs)]
    return [
        _level(tag, progress, sign, start + (target - start) * progress, runs)
        for progress in PROGRESS
    ]


def _level(
    tag: str, progress: float, sign: int, level: float, runs: list[tuple[Curve, Smoothed]]
) -> tuple[Any, ...]:
    places = [(curve, first_at(found, level)) for curve, found in runs]
    steps = [None if place is None else int(curve.step[place]) for curve, place in places]
    times = [None if place is None or np.isnan(curve.ts_ns[place]) else int(curve.ts_ns[place])
             for curve, place in places]  # fmt: skip
    return tag, progress, sign * level, *steps, *times
