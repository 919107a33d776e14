"""Which events of which rows lie in a stretch of time?"""

import numpy as np

from strobe.timeline.index import Index
from strobe.timeline.rows import Array


def first_at_least(values: Array, low: Array, high: Array, wanted: int) -> Array:
    """For each sorted stretch [low, high) of values, where its first one >= wanted stands.

    All stretches are halved at once: a loop over rows takes longer than all else.
    """
    low, high = low.astype(np.int64), high.astype(np.int64)
    while (low < high).any():
        middle = (low + high) >> 1
        open_still = low < high
        smaller = open_still & (values[np.where(open_still, middle, 0)] < wanted)
        low = np.where(smaller, middle + 1, low)
        high = np.where(open_still & ~smaller, middle, high)
    return low


def spans_of(index: Index, rows: Array, t0: int, t1: int) -> tuple[Array, Array]:
    """For each row the positions [first, last) of events that touch [t0, t1), from the origin."""
    row_at, start = index.arrays["row_at"], index.arrays["start_ns"]
    low, high = row_at[rows], row_at[rows + 1]
    first = first_at_least(start, low, high, t0)
    last = first_at_least(start, first, high, t1)
    before = np.maximum(first - 1, low)
    if len(start):
        ends = start[before] + index.arrays["dur_ns"][before]
        reaches = (before < first) & (ends > t0)
        first = np.where(reaches, before, first)
    return first, last


def joined(first: Array, last: Array) -> Array:
    """The numbers of all stretches [first, last), one after the other."""
    counts = last - first
    total = int(counts.sum())
    steps = np.repeat(first - np.append(0, np.cumsum(counts)[:-1]), counts)
    return steps + np.arange(total)
