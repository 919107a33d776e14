"""Match two sets of events that happened at the same moment in the same place."""

import numpy as np

from strobe.ingest.trace.codes import Array

_NO_MOMENT = np.iinfo(np.int64).min


def paired(left: tuple[Array, Array], right: tuple[Array, Array]) -> Array:
    """For each (moment, number) on the left the last row on the right that equals it, or -1."""
    # One side may be all of a timeline, of which few moments are needed.
    rows = np.flatnonzero(_is_among(right[0], left[0]))
    found = _paired(left, (right[0][rows], right[1][rows]))
    return np.append(rows, -1)[found]


def _is_among(moments: Array, wanted: Array) -> Array:
    wanted = np.sort(wanted)
    place = np.searchsorted(wanted, moments)
    found: Array = np.append(wanted, _NO_MOMENT)[place] == moments
    return found


def _paired(left: tuple[Array, Array], right: tuple[Array, Array]) -> Array:
    moments, place = np.unique(np.concatenate([left[0], right[0]]), return_inverse=True)
    numbers = np.concatenate([left[1], right[1]])
    key = place * (int(numbers.max(initial=0)) + 2) + numbers + 1
    mine, theirs = key[: len(left[0])], key[len(left[0]) :]
    if not len(theirs):
        return np.full(len(mine), -1, dtype=np.int64)
    order = np.argsort(theirs, kind="stable")
    at = np.searchsorted(theirs[order], mine, side="right") - 1
    found = np.where(at >= 0, order[at], 0)
    return np.where((at >= 0) & (theirs[found] == mine), found, -1)
