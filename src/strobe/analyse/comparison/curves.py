"""Curves of logged numbers, and figures of them that one noisy value does not move."""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.analyse.comparison.steps import BATCHES, LEAST_STEPS, student
from strobe.store.run import Run

Array = np.ndarray[Any, np.dtype[Any]]

# The final value of a curve is the median of this share of its values, and of at least
# LEAST_VALUES of them.
FINAL_SHARE = 0.1
# It is smoothed by the median of this share of values, up to each.
SMOOTHING_SHARE = 0.02
LEAST_VALUES = 5
# A long curve has at most this number of smoothed values.
_PLACES = 2000

LOWER, HIGHER = "lower", "higher"
_LOWER_WORDS = {"loss", "losses", "error", "err", "perplexity", "ppl", "nll", "mae", "mse", "rmse",
                "wer", "cer"}  # fmt: skip
_HIGHER_WORDS = {"accuracy", "acc", "top1", "top5", "f1", "auc", "bleu", "rouge", "precision",
                 "recall", "iou", "miou", "dice", "reward", "r2", "score"}  # fmt: skip
# loss_scale is not a loss.
_OTHER_WORDS = {"scale", "scaling", "weight"}
_WORD = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+\d*(?![a-z])")

# A step that was logged again counts once: with its last value, of the last attempt. Ranks that
# logged the same step are averaged.
_SQL = """
    WITH logged AS (
        SELECT rank, tag, value, ts_ns, attempt, row_number() OVER () AS number, {step} AS step
        FROM scalars WHERE list_contains($tags, tag)
    ),
    last_logged AS (
        SELECT tag, step,
               arg_max({{'value': value, 'ts_ns': ts_ns}}, (attempt, number)) AS last
        FROM logged GROUP BY rank, tag, step
    )
    SELECT tag, step, avg(last.value) AS value, max(last.ts_ns) AS ts_ns
    FROM last_logged GROUP BY tag, step ORDER BY tag, step
"""
_POSITION = "coalesce(step, row_number() OVER (PARTITION BY rank, tag, attempt) - 1)"


@dataclass(frozen=True)
class Curve:
    """The values of a tag by step; times are NaN where they are unknown."""

    step: Array
    value: Array
    ts_ns: Array

    @property
    def is_finite(self) -> Array:
        finite: Array = np.isfinite(self.value)
        return finite


def curves(run: Run, tags: list[str]) -> dict[str, Curve]:
    ((unknown,),) = run.sql("SELECT count(*) FROM scalars WHERE step IS NULL").fetchall()
    query = _SQL.format(step=_POSITION if unknown else "step")
    found = run.sql(query, {"tags": tags}).fetchnumpy()
    names = np.ma.getdata(found["tag"])
    if not len(names):
        return {}
    borders = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), len(names)]
    ts_ns = np.ma.filled(found["ts_ns"].astype(np.float64), np.nan)
    return {
        str(names[start]): Curve(
            np.ma.getdata(found["step"])[start:end], np.ma.getdata(found["value"])[start:end],
            ts_ns[start:end],
        )
        for start, end in zip(borders[:-1], borders[1:], strict=True)
    }  # fmt: skip


def better(tag: str) -> str | None:
    """Whether lower or higher values are better, as far as its name tells."""
    words = {word.lower() for word in _WORD.findall(tag)}
    is_lower, is_higher = bool(words & _LOWER_WORDS), bool(words & _HIGHER_WORDS)
    if is_lower == is_higher or words & _OTHER_WORDS:
        return None
    return LOWER if is_lower else HIGHER


@dataclass(frozen=True)
class End:
    """The level at which a curve ends, and its noise."""

    level: float | None  # null if most of the last values are NaN or infinite
    noise: float | None  # standard error; null with too few values
    batches: int


def end(curve: Curve) -> End:
    """The median of the last values; noise is the spread of the medians of consecutive batches.

    Batches keep what correlation and trend there is, both of which make the noise larger.
    """
    last = curve.value[-_window(len(curve.value), FINAL_SHARE) :]
    finite = last[np.isfinite(last)]
    if 2 * len(finite) <= len(last):
        return End(None, None, 0)
    batches = min(BATCHES, len(finite))
    level = float(np.median(finite))
    if batches < LEAST_STEPS:
        return End(level, None, batches)
    medians = [float(np.median(batch)) for batch in np.array_split(finite, batches)]
    return End(level, float(np.std(medians, ddof=1)) / math.sqrt(batches), batches)


def difference(a: End, b: End) -> tuple[float | None, float | None, float | None]:
    """Second minus first, and its 95% confidence interval as far as the noise is known."""
    if a.level is None or b.level is None:
        return None, None, None
    change = b.level - a.level
    if a.noise is None or b.noise is None:
        return change, None, None
    reach = student(a.batches + b.batches - 2) * math.hypot(a.noise, b.noise)
    return change, change - reach, change + reach


@dataclass(frozen=True)
class Smoothed:
    """A curve whose lower values are better, by the medians of the values up to some of them."""

    place: Array
    value: Array


def smoothed(curve: Curve, is_lower_better: bool) -> Smoothed:
    """NaN and infinite values count as the worst: a training that diverged reaches no level."""
    values = np.where(curve.is_finite, curve.value if is_lower_better else -curve.value, np.inf)
    width = _window(len(values), SMOOTHING_SHARE)
    count = len(values) - width + 1
    first = np.unique(np.linspace(0, count - 1, min(count, _PLACES)).astype(np.int64))
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    # In pieces: a window of a curve with a million values has 20,000.
    medians = [_medians(windows[part]) for part in np.array_split(first, max(1, len(first) // 100))]
    return Smoothed(first + width - 1, np.concatenate(medians))


def _medians(windows: Array) -> Array:
    with np.errstate(invalid="ignore"):  # of two infinities
        found: Array = np.median(windows, axis=1)
    return np.where(np.isnan(found), np.inf, found)


def first_at(found: Smoothed, level: float) -> int | None:
    """The place at which the curve first reaches a level; None if it never does."""
    reached = np.flatnonzero(found.value <= level)
    return int(found.place[reached[0]]) if len(reached) else None


def _window(count: int, share: float) -> int:
    return min(count, max(LEAST_VALUES, math.ceil(count * share)))
