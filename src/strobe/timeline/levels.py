"""Events of rows, summed up in buckets of time: one level for each power of two.

A bucket is kept where an event begins or ends in it, with exactly how much of it events cover.
Between two kept buckets either nothing happens or one event goes on: the `run` of the first.
"""

from typing import NamedTuple

import numpy as np

from strobe.timeline.rows import Array

# A level above has no more to say once the whole span has this few buckets.
FEWEST_BUCKETS = 512


class Level(NamedTuple):
    """Kept buckets of 2**`shift` ns, in order of (row, bucket)."""

    shift: int
    row: Array
    bucket: Array
    cover_ns: Array
    # The longest event that touches the bucket, as its position.
    longest: Array
    # Events that begin in it.
    begun: Array
    # How many buckets after this one are covered by one event, and which one.
    run: Array
    runner: Array


def level_of_events(
    shift: int, row: Array, start_ns: Array, end_ns: Array, position: Array
) -> Level:
    """The level of events that lie in order of (row, start) and do not overlap in a row."""
    first = start_ns >> shift
    last = np.maximum(end_ns - 1, start_ns) >> shift
    ends_later = last > first
    # Each event gives the bucket it begins in, and the one it ends in. In this order they are
    # sorted already, because the next event begins where this one ended, or after.
    pieces = 1 + ends_later
    of = np.repeat(np.arange(len(row)), pieces)
    is_tail = np.zeros(len(of), dtype=bool)
    is_tail[np.cumsum(pieces)[ends_later] - 1] = True
    length = end_ns - start_ns
    cover = length[of]
    cover[~is_tail] = np.minimum(end_ns, (first + 1) << shift) - start_ns
    tails = of[is_tail]
    cover[is_tail] = end_ns[tails] - (last[tails] << shift)
    run = np.where(is_tail, 0, np.maximum(last - first - 1, 0)[of])
    bucket = np.where(is_tail, last[of], first[of])
    begun = (~is_tail).astype(np.int64)
    pieces_level = Level(shift, row[of], bucket, cover, position[of], begun, run, position[of])
    return _joined(pieces_level, length[of])


def coarser(level: Level, length_ns: Array) -> Level:
    """The level with buckets twice as long; `length_ns` of every event, by position."""
    has_run = level.run > 0
    # A run that begins in the upper half of a bucket of the coarser level fills that half; so
    # does one that ends in a lower half, for the bucket of the entry that follows.
    begins_high = has_run & (level.bucket % 2 == 0)
    left = level.run - begins_high
    ends_low = has_run & (left % 2 == 1)
    half = 1 << level.shift
    cover = level.cover_ns + half * begins_high
    cover[1:] += half * ends_low[:-1]
    merged = level._replace(
        shift=level.shift + 1, bucket=level.bucket >> 1, cover_ns=cover, run=left // 2
    )
    return _joined(merged, length_ns[level.longest])


def _joined(pieces: Level, length_ns: Array) -> Level:
    """Neighbours in one bucket become one."""
    if not len(pieces.row):
        return pieces
    begins = np.ones(len(pieces.row), dtype=bool)
    begins[1:] = (np.diff(pieces.bucket) != 0) | (np.diff(pieces.row) != 0)
    at = np.flatnonzero(begins)
    last = np.append(at[1:], len(begins)) - 1
    return Level(
        pieces.shift,
        pieces.row[at],
        pieces.bucket[at],
        np.add.reduceat(pieces.cover_ns, at),
        pieces.longest[_longest(at, begins, length_ns)],
        np.add.reduceat(pieces.begun, at),
        pieces.run[last],
        pieces.runner[last],
    )


def _longest(at: Array, begins: Array, length_ns: Array) -> Array:
    """The first of the longest pieces of each group."""
    group = np.cumsum(begins) - 1
    candidates = np.flatnonzero(length_ns == np.maximum.reduceat(length_ns, at)[group])[::-1]
    chosen = np.empty(len(at), dtype=np.int64)
    chosen[group[candidates]] = candidates
    return chosen


def finest_shift(row: Array, start_ns: Array) -> int:
    """Below it buckets would save nothing: most hold one event, and events are as quick to read."""
    apart = np.diff(start_ns)[np.diff(row) == 0]
    if not len(apart):
        return 0
    return max(0, int(np.median(apart)).bit_length())


def coarsest_shift(span_ns: int) -> int:
    return max(0, (span_ns // FEWEST_BUCKETS).bit_length())
