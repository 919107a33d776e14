"""Where in time a run was recorded at all: its ranks, or its restarts, may lie hours apart."""

from typing import Any

import numpy as np

from strobe.timeline.rows import Array

# A viewer lists them; beyond that nobody chooses one by its place in a list.
MOST_STRETCHES = 64
# Who pauses for less is seen at a glance, however little was recorded.
LEAST_GAP_NS = 60 * 10**9


def stretches(start_ns: Array, end_ns: Array, rank: Array) -> list[dict[str, Any]]:
    """Parted where for longer than all that was recorded nothing was: seen as a whole, such a run
    is empty. In order of time, each with its number of events and its ranks."""
    if not len(start_ns):
        return []
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], np.maximum.accumulate(end_ns[order])
    gap = start[1:] - end[:-1]
    recorded_ns = int(end[-1] - start[0] - gap[gap > 0].sum())
    longest = np.argsort(-gap, kind="stable")[: MOST_STRETCHES - 1]
    parts = np.sort(longest[gap[longest] > max(LEAST_GAP_NS, recorded_ns)]) + 1
    bounds = [0, *parts.tolist(), len(start)]
    return [
        {
            "begin_ns": int(start[first]),
            "end_ns": int(end[last - 1]),
            "events": last - first,
            "ranks": np.unique(rank[order[first:last]]).tolist(),
        }
        for first, last in zip(bounds[:-1], bounds[1:], strict=True)
    ]
