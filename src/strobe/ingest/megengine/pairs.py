"""The spans of each thread of a MegEngine timeline, and how they lie in one another."""

from dataclasses import dataclass

import numpy as np

from strobe.ingest.chrome import pairs as chrome_pairs
from strobe.ingest.codes import Array


@dataclass
class Pairs:
    """One entry for each begin, by thread and time. Rows are those that were given."""

    begin: Array  # row of the begin
    end: Array  # row of its end; -1 where the file has none
    last: Array  # row of the last event of its thread, where it has to end without one
    level: Array  # 0 for an outermost span
    parent: Array  # entry of the span around it; -1
    stray_ends: int  # ends that nothing began

    def by_level(self) -> list[Array]:
        """Entries from the outermost inwards."""
        return _by_level(self.level)


def paired(thread: Array, ts_ns: Array, is_begin: Array) -> Pairs:
    """Ends close the begin that was opened last on their thread, whatever they are called."""
    found = chrome_pairs.nested(thread, ts_ns, is_begin)
    level = found.depth - 1
    last = np.zeros(int(thread.max(initial=-1)) + 1, dtype=np.int64)
    in_time = np.argsort(ts_ns, kind="stable")
    last[thread[in_time]] = in_time
    return Pairs(
        found.begin, found.end, last[thread[found.begin]], level, _one_level_up(level),
        len(found.alone),
    )  # fmt: skip


def _by_level(level: Array) -> list[Array]:
    order = np.argsort(level, kind="stable")
    return np.split(order, np.cumsum(np.bincount(level))[:-1]) if len(level) else []


def _one_level_up(level: Array) -> Array:
    """The parent of a span is the last one before it that is one level up."""
    parent = np.full(len(level), -1, dtype=np.int64)
    levels = _by_level(level)
    for upper, lower in zip(levels, levels[1:], strict=False):
        parent[lower] = upper[np.searchsorted(upper, lower) - 1]
    return parent
