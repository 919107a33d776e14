"""Which event contains which, on each track, from their times alone."""

import numpy as np

from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import in_order

# Each round cuts an event that outlasts its parent, one in each outermost event; they are rare. If
# they are not, a stack is faster than further rounds: one round costs as much as ten steps of the
# stack per event.
_ROUNDS = 3


def parents(track: Array, ts_ns: Array, dur_ns: Array) -> Array:
    """The row of the innermost enclosing event on its track for each event; -1 if there is none.

    Of two events with the same start the longer is the outer one, of equals the earlier row. An
    event that outlasts the one it began in is nested as if it ended with it.
    """
    result = np.full(len(ts_ns), -1, dtype=np.int64)
    order = in_order(ts_ns, dur_ns)
    order = order[np.argsort(_small(track[order]), kind="stable")]
    borders = np.flatnonzero(np.diff(track[order])) + 1
    for rows in np.split(order, borders):
        if len(rows):
            inside = _sorted_parents(ts_ns[rows], dur_ns[rows])
            result[rows] = np.where(inside >= 0, rows[inside], -1)
    return result


def _small(track: Array) -> Array:
    """As short integers if they fit: those sort in linear time."""
    return track.astype(np.int16) if len(track) and track.max() < 2**15 else track


def nearest(chosen: Array, parent: Array) -> Array:
    """For each event the innermost chosen one among itself and its ancestors, or -1."""
    rows = np.arange(len(parent), dtype=np.int64)
    up = np.append(np.where(chosen, rows, parent), -1)  # the last row answers for -1
    while True:
        further = up[up]
        if np.array_equal(further, up):
            return up[:-1]
        up = further


def _sorted_parents(start: Array, length: Array) -> Array:
    """For events in order of (start, longest first)."""
    # Doubled, an instant can last half a nanosecond, so that it is inside what begins with it.
    start = start * 2
    end = start + np.maximum(length * 2, 1)
    rounds = 0
    while True:
        depth = np.arange(len(start)) - np.searchsorted(np.sort(end), start, side="right")
        parent = one_level_up(depth)
        too_long = np.flatnonzero((parent >= 0) & (end > end[parent]))
        if not len(too_long):
            return parent
        # Up to the first one of an outermost span all parents are right; after it they may not be.
        outermost = np.cumsum(depth == 0)
        if rounds == _ROUNDS:
            break
        first = too_long[np.unique(outermost[too_long], return_index=True)[1]]
        end[first] = end[parent[first]]
        rounds += 1
    rows = np.flatnonzero(np.isin(outermost, outermost[too_long]))
    inside = _stacked_parents(start[rows], end[rows])
    parent[rows] = np.where(inside >= 0, rows[inside], -1)
    return parent


def one_level_up(depth: Array) -> Array:
    """The parent of an event is the last one before it that is one level up."""
    by_depth = np.argsort(depth, kind="stable")
    levels = np.split(by_depth, np.cumsum(np.bincount(depth))[:-1])
    parent = np.full(len(depth), -1, dtype=np.int64)
    for upper, lower in zip(levels, levels[1:], strict=False):
        place = np.searchsorted(upper, lower) - 1
        parent[lower] = np.where(place >= 0, upper[place], -1) if len(upper) else -1
    return parent


def _stacked_parents(start: Array, end: Array) -> Array:
    """The same with a stack, for outermost spans that contain many overlapping events."""
    parent = np.full(len(start), -1, dtype=np.int64)
    stack: list[tuple[int, int]] = []
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while stack and stack[-1][1] <= begin:
            stack.pop()
        if stack:
            parent[row], finish = stack[-1][0], min(finish, stack[-1][1])
        stack.append((row, finish))
    return parent
