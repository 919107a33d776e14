"""Beginnings and ends that lie apart in a file, joined to spans."""

import heapq
from typing import NamedTuple

import numpy as np

from strobe.ingest.codes import Array


class Pairs(NamedTuple):
    begin: Array  # rows, in the order of their group and time
    end: Array  # rows; -1 where a span was never ended
    depth: Array  # 1 for the outermost
    alone: Array  # rows of ends that nothing began


def nested(group: Array, ts_ns: Array, is_begin: Array) -> Pairs:
    """An end closes the innermost span of its group that is open.

    Rows of one moment are taken in the order in which they are given.
    """
    order = np.lexsort((np.arange(len(group)), ts_ns, group))
    group, begins = group[order], is_begin[order]
    step = np.where(begins, 1, -1)
    borders = np.flatnonzero(np.diff(group, prepend=group[:1] - 1)) if len(group) else order
    level = np.cumsum(step)
    before = np.repeat(level[borders] - step[borders], np.diff(np.append(borders, len(group))))
    # Groups are set apart by more than any depth, so that one running minimum serves them all.
    apart = np.repeat(np.arange(len(borders)), np.diff(np.append(borders, len(group))))
    base = -apart.astype(np.int64) * (len(group) + 1)
    level = level - before + base
    floor = np.minimum.accumulate(np.minimum(level, base)) if len(group) else level
    previous = np.append(np.int64(0), floor[:-1]) if len(group) else floor
    is_alone = ~begins & (floor < np.minimum(previous, base))
    depth = np.where(begins, level - floor, level - floor + 1)
    return _joined(order, apart, depth, begins, is_alone)


def _joined(order: Array, group: Array, depth: Array, begins: Array, is_alone: Array) -> Pairs:
    """At each depth of a group beginnings and ends take turns."""
    rows = np.flatnonzero(~is_alone)
    rows = rows[np.lexsort((rows, depth[rows], group[rows]))]
    following = np.append(rows[1:], -1) if len(rows) else rows
    closes = (following >= 0) & begins[rows] & ~begins[following]
    closes &= (group[rows] == group[following]) & (depth[rows] == depth[following])
    begin = np.flatnonzero(begins[rows])
    begin = begin[np.argsort(rows[begin], kind="stable")]
    end = np.where(closes[begin], order[following[begin]], -1)
    return Pairs(order[rows[begin]], end, depth[rows[begin]], order[is_alone])


def lanes(family: Array, ts_ns: Array, end_ns: Array) -> Array:
    """A number for each span, so that those of one family and number do not overlap."""
    result = np.zeros(len(ts_ns), dtype=np.int64)
    order = np.lexsort((-end_ns, ts_ns, family))
    free: list[tuple[int, int]] = []  # when a lane is free again, its number
    last = None
    for row in order.tolist():
        if family[row] != last:
            free, last, count = [], family[row], 0
        if free and free[0][0] <= ts_ns[row]:
            _, number = heapq.heappop(free)
        else:
            number, count = count, count + 1
        result[row] = number
        heapq.heappush(free, (int(end_ns[row]), number))
    return result
