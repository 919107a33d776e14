"""What happened on some rows between two moments: by name, by row, and the longest events."""

from typing import Any

import numpy as np

from strobe.model.schema import Column, Table
from strobe.timeline.details import brief
from strobe.timeline.index import Index
from strobe.timeline.parts import groups
from strobe.timeline.rows import Array
from strobe.timeline.window import joined, spans_of

RESULT = Table(
    "area",
    "What happened in a chosen area of the timeline, by name; times are cut to the area.",
    (
        Column("name", "str", "Name of the events."),
        Column("kind", "str", "Their kind."),
        Column("count", "i64", "How many of them touch the area."),
        Column("total_ns", "i64", "Their time in the area."),
        Column("self_ns", "i64", "Of that, outside of events that lie in them."),
        Column("mean_ns", "i64", "Mean of their time in the area."),
        Column("longest_ns", "i64", "The longest of them, whole."),
    ),
)

LONGEST = Table(
    "events_in_view",
    "The longest events of an area, in order of time.",
    (
        Column("id", "i64", "Id of the event; joins events.id."),
        Column("name", "str", "Its name."),
        Column("kind", "str", "Its kind."),
        Column("row", "i64", "Row of the timeline."),
        Column("ts_ns", "i64", "Start, in nanoseconds since the run began."),
        Column("dur_ns", "i64", "Its length."),
        Column("self_ns", "i64", "Of that, outside of events that lie in it."),
    ),
)


def area(index: Index, rows: list[int], t0_ns: int, t1_ns: int) -> dict[str, Any]:
    """Statistics by name, longest total first, and how much of each row is busy."""
    t0, t1 = t0_ns - index.origin_ns, t1_ns - index.origin_ns
    chosen = np.unique(np.asarray(rows, dtype=np.int64))
    first, last = spans_of(index, chosen, t0, t1)
    position = joined(first, last)
    time_ns = _cut(index, position, t0, t1)
    of_row = np.repeat(np.arange(len(chosen)), last - first)
    busy = np.bincount(of_row, time_ns, minlength=len(chosen))
    return {
        "rows": _by_name(index, position, time_ns, _self(index, chosen, position, time_ns, t0, t1)),
        "busy_ns": dict(zip(chosen.tolist(), busy.astype(np.int64).tolist(), strict=True)),
        "events": len(position),
        "span_ns": t1 - t0,
    }


def _cut(index: Index, position: Array, t0: int, t1: int) -> Array:
    start = index.arrays["start_ns"][position]
    end = start + index.arrays["dur_ns"][position]
    cut: Array = np.minimum(end, t1) - np.maximum(start, t0)
    return cut


def _self(index: Index, rows: Array, position: Array, time_ns: Array, t0: int, t1: int) -> Array:
    """Time in the area without that of children, on whatever row of the same track they lie."""
    all_rows = _rows_of_tracks(index, rows)
    inner = joined(*spans_of(index, all_rows, t0, t1))
    parent = index.arrays["parent"][inner].astype(np.int64)
    place = np.minimum(np.searchsorted(position, parent), max(0, len(position) - 1))
    is_child = (parent >= 0) & (len(position) > 0)
    is_child[is_child] = position[place[is_child]] == parent[is_child]
    inside = _cut(index, inner[is_child], t0, t1)
    children = np.bincount(place[is_child], inside, minlength=len(position)).astype(np.int64)
    return np.maximum(time_ns - children[: len(position)], 0)


def _rows_of_tracks(index: Index, rows: Array) -> Array:
    ends = np.unique(groups(index.about["tracks"]))
    starts = np.append(0, ends[:-1])
    tracks = np.unique(np.searchsorted(ends, rows, side="right"))
    return joined(starts[tracks], ends[tracks])


def _by_name(index: Index, position: Array, time_ns: Array, self_ns: Array) -> list[list[Any]]:
    name = index.arrays["name"][position]
    count = np.bincount(name, minlength=index.names)
    # Sums of nanoseconds as floats are exact up to 104 days.
    total = np.bincount(name, time_ns, minlength=index.names).astype(np.int64)
    own = np.bincount(name, self_ns, minlength=index.names).astype(np.int64)
    longest = np.zeros(index.names, dtype=np.int64)
    np.maximum.at(longest, name, index.arrays["dur_ns"][position])
    seen = np.flatnonzero(count)
    return [
        [index.name(code), index.kind(code), int(count[code]), int(total[code]), int(own[code]),
         int(total[code]) // int(count[code]), int(longest[code])]
        for code in seen[np.argsort(-total[seen], kind="stable")].tolist()
    ]  # fmt: skip


def longest(index: Index, rows: list[int], t0_ns: int, t1_ns: int, most: int) -> list[list[Any]]:
    """Rows of LONGEST, and how many events there are in all is told by `area`."""
    chosen = np.asarray(rows, dtype=np.int64)
    t0, t1 = t0_ns - index.origin_ns, t1_ns - index.origin_ns
    position = joined(*spans_of(index, chosen, t0, t1))
    if len(position) > most:
        length = index.arrays["dur_ns"][position]
        position = position[np.argpartition(-length, most)[:most]]
    position = position[np.argsort(index.arrays["start_ns"][position], kind="stable")]
    briefs = [brief(index, int(at)) for at in position]
    return [[event[name] for name in LONGEST.column_names] for event in briefs]
