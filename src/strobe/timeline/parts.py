"""Which events of a track have rows of their own, so that what ran is seen first?

Python frames surround all that a thread does, and annotations all that a stream does: among
operators and kernels they would take the first rows and leave none in sight.
"""

from typing import Any

import numpy as np

from strobe.timeline.rows import Array

# SQL over `events e JOIN tracks t`.
IS_ASIDE = """
    (e.kind = 'python' OR (e.kind = 'annotation' AND t.device NOT IN ('cpu', 'steps')))
"""


def divided(
    tracks: list[dict[str, Any]], track: Array, is_aside: Array
) -> tuple[list[dict[str, Any]], Array]:
    """The tracks, those with both kinds of events as two parts, and the part of each event.

    The second part follows its first and `joins` it. Threads that have Python frames alone come
    after the others of their rank.
    """
    total = np.bincount(track, minlength=len(tracks))
    aside = np.bincount(track, is_aside, minlength=len(tracks)).astype(np.int64)
    parts: list[dict[str, Any]] = []
    places = np.zeros((len(tracks), 2), dtype=np.int64)
    is_cpu = [one["device"] == "cpu" for one in tracks]
    order = sorted(
        range(len(tracks)),
        key=lambda at: (tracks[at]["rank"], is_cpu[at] and total[at] == aside[at]),
    )
    for at in order:
        one = tracks[at]
        word = "python" if is_cpu[at] else "annotations"
        if aside[at] and aside[at] == total[at]:
            parts.append({**one, "part": word} if is_cpu[at] else one)
            places[at] = len(parts) - 1
            continue
        parts.append(one)
        places[at] = len(parts) - 1
        if aside[at]:
            # Ids of tracks count from 0, so these are free.
            parts.append({**one, "id": -1 - one["id"], "part": word, "joins": True})
            places[at, 1] = len(parts) - 1
    return parts, places[track, is_aside.astype(np.int64)]


def parents_within(parent: Array, part: Array) -> Array:
    """The innermost event around each that lies on the same part, or -1."""
    near = parent.copy()
    other = np.flatnonzero(near >= 0)
    while len(other):
        other = other[part[near[other]] != part[other]]
        near[other] = parent[near[other]]
        other = other[near[other] >= 0]
    return near


def groups(tracks: list[dict[str, Any]]) -> Array:
    """The end of the rows of each part's whole track, parts taken together."""
    ends = np.cumsum([track["rows"] for track in tracks])
    for at in range(len(tracks) - 2, -1, -1):
        if tracks[at + 1].get("joins"):
            ends[at] = ends[at + 1]
    return np.asarray(ends)
