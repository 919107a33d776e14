"""Sums over blocks of 16, 256, 4,096, ... neighbouring values, and from them over any ranges.

Each has the smallest and largest finite value with their positions, and the sum of the finite
values. A range costs at most 30 entries of each level, however long it is, and gives exactly what
its values give.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from strobe.store.array_file import Array

FACTOR = 16
# Values are summed up in portions of this many, so that temporary arrays stay small.
_PORTION = FACTOR**4
_NO_POSITION = np.iinfo(np.int64).max


class Sums(NamedTuple):
    """A row for each block or range. Without finite values, `low` is +Inf and `high` -Inf."""

    low: Array
    high: Array
    low_at: Array
    high_at: Array
    sum: Array

    def at(self, rows: Any) -> "Sums":
        return Sums(*(column[rows] for column in self))


def level_sizes(count: int) -> list[int]:
    """The number of blocks of each level over `count` values; a level of one block is left out."""
    sizes = []
    while count > FACTOR:
        count = -(-count // FACTOR)
        sizes.append(count)
    return sizes


def build(values: Array, old: list[Sums] | None = None, same: int = 0) -> list[Sums]:
    """The levels over these values; `old` blocks within the first `same` are kept."""
    levels: list[Sums] = []
    below: Sums | None = None
    for number, size in enumerate(level_sizes(len(values))):
        same //= FACTOR
        reused = same if old is not None and number < len(old) else 0
        if below is None:
            new = _blocks_of_values(values, reused)
        else:
            new = _blocks(below.at(slice(reused * FACTOR, None)))
        below = _joined(old[number].at(slice(reused)), new) if old is not None and reused else new
        assert len(below.low) == size
        levels.append(below)
    return levels


def _joined(*parts: Sums) -> Sums:
    return Sums(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _blocks_of_values(values: Array, skipped: int) -> Sums:
    starts = range(skipped * FACTOR, len(values), _PORTION)
    return _joined(
        *(_blocks(_of_values(values[at : at + _PORTION], at)) for at in starts),
    )


def _of_values(values: Array, first: int | Array = 0) -> Sums:
    """Each value as a sum of one; `first` is the position of the first, or all positions."""
    is_finite = np.isfinite(values)
    position = first + np.arange(len(values)) if isinstance(first, int) else first
    return Sums(
        np.where(is_finite, values, np.inf),
        np.where(is_finite, values, -np.inf),
        np.where(is_finite, position, _NO_POSITION),
        np.where(is_finite, position, _NO_POSITION),
        np.where(is_finite, values, 0.0),
    )


def _blocks(sums: Sums) -> Sums:
    return _combined(sums, np.arange(0, len(sums.low), FACTOR))


def _combined(sums: Sums, starts: Array) -> Sums:
    """Sums over the stretches of rows that begin at `starts`; equal extremes: the first counts."""
    low, high = np.minimum.reduceat(sums.low, starts), np.maximum.reduceat(sums.high, starts)
    lengths = np.diff(np.append(starts, len(sums.low)))
    is_low = sums.low == np.repeat(low, lengths)
    is_high = sums.high == np.repeat(high, lengths)
    return Sums(
        low,
        high,
        np.minimum.reduceat(np.where(is_low, sums.low_at, _NO_POSITION), starts),
        np.minimum.reduceat(np.where(is_high, sums.high_at, _NO_POSITION), starts),
        np.add.reduceat(sums.sum, starts),
    )


def over_ranges(values: Array, levels: list[Sums], begin: Array, end: Array) -> Sums:
    """Sums over the values from `begin` to before `end`, for each pair; no range may be empty."""
    parts, owners = [], []
    for level, owner, first, last in _parts(begin, end, len(levels)):
        is_part = first < last
        owner, first, last = owner[is_part], first[is_part], last[is_part]
        if not len(owner):
            continue
        rows, starts = _spread(first, last)
        entries = _of_values(values[rows], rows) if not level else levels[level - 1].at(rows)
        parts.append(_combined(entries, starts))
        owners.append(owner)
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    changes = np.flatnonzero(np.diff(owner[order], prepend=-1))
    return _combined(_joined(*parts).at(order), changes)


def _parts(begin: Array, end: Array, top: int) -> Iterator[tuple[int, Array, Array, Array]]:
    """Level, number of the range, and entries of the level: together they cover the ranges."""
    owner = np.arange(len(begin))
    for level in range(top):
        up, down = -(-begin // FACTOR), end // FACTOR
        has_blocks = up < down
        yield level, owner[~has_blocks], begin[~has_blocks], end[~has_blocks]
        owner, begin, end = owner[has_blocks], begin[has_blocks], end[has_blocks]
        up, down = up[has_blocks], down[has_blocks]
        yield level, owner, begin, up * FACTOR
        yield level, owner, down * FACTOR, end
        begin, end = up, down
    yield top, owner, begin, end


def _spread(first: Array, last: Array) -> tuple[Array, Array]:
    """All entries of these ranges, one range after the other, and where each begins among them."""
    lengths = last - first
    starts = np.cumsum(lengths) - lengths
    return np.repeat(first - starts, lengths) + np.arange(int(lengths.sum())), starts
