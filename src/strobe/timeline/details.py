"""One event: what it is, what it lies in, what caused it and what it caused."""

from typing import Any

import numpy as np

from strobe.errors import UsageError
from strobe.model.schema import STORED_TABLES
from strobe.store.run import Run
from strobe.timeline.index import Index
from strobe.timeline.parts import groups
from strobe.timeline.rows import Array
from strobe.timeline.window import spans_of

# Causes and effects told of one event: a backward pass may have thousands.
MOST_FLOWS = 50
_ARGUMENTS = tuple(table for table in STORED_TABLES if table.name.endswith("_args"))


def position_of(index: Index, event_id: int) -> int:
    """Raises UsageError if there is no such event."""
    by_id, ids = index.arrays["by_id"], index.arrays["id"]
    low, high = 0, len(by_id)
    while low < high:
        middle = (low + high) // 2
        if ids[by_id[middle]] < event_id:
            low = middle + 1
        else:
            high = middle
    if low == len(by_id) or ids[by_id[low]] != event_id:
        raise UsageError.of("errors/pages.no-event", number=event_id)
    return int(by_id[low])


def row_of(index: Index, position: int) -> int:
    return int(np.searchsorted(index.arrays["row_at"], position, side="right")) - 1


def brief(index: Index, position: int) -> dict[str, Any]:
    arrays = index.arrays
    code = int(arrays["name"][position])
    return {
        "position": position,
        "id": int(arrays["id"][position]),
        "name": index.name(code),
        "kind": index.kind(code),
        "code": code,
        "row": row_of(index, position),
        "ts_ns": int(arrays["start_ns"][position]) + index.origin_ns,
        "dur_ns": int(arrays["dur_ns"][position]),
        "self_ns": int(arrays["self_ns"][position]),
    }


def at(index: Index, row: int, t0_ns: int, t1_ns: int) -> int | None:
    """The position of the longest event of a row that touches a stretch of time."""
    if not 0 <= row < index.rows:
        raise UsageError.of("errors/pages.no-row", last=index.rows - 1)
    t0, t1 = t0_ns - index.origin_ns, max(t1_ns, t0_ns + 1) - index.origin_ns
    first, last = (int(end[0]) for end in spans_of(index, np.array([row]), t0, t1))
    if first == last:
        return None
    return first + int(np.argmax(index.arrays["dur_ns"][first:last]))


def details(index: Index, position: int) -> dict[str, Any]:
    """The event, those around it, its neighbours, its causes and its effects."""
    row_at, row = index.arrays["row_at"], row_of(index, position)
    around, up = [], int(index.arrays["parent"][position])
    while up >= 0:
        around.append(brief(index, up))
        up = int(index.arrays["parent"][up])
    has_next, has_previous = position + 1 < row_at[row + 1], position > row_at[row]
    return {
        "event": brief(index, position),
        "around": around,
        "previous": brief(index, position - 1) if has_previous else None,
        "next": brief(index, position + 1) if has_next else None,
        "first_inside": _first_inside(index, position, row),
        **_flows(index, position),
    }


def _first_inside(index: Index, position: int, row: int) -> dict[str, Any] | None:
    """The first event whose parent it is, on whatever row of its track."""
    start = int(index.arrays["start_ns"][position])
    end = start + max(1, int(index.arrays["dur_ns"][position]))
    found = []
    for first, last in zip(*spans_of(index, _rows_inside(index, row), start, end), strict=True):
        inside = np.flatnonzero(index.arrays["parent"][first:last] == position)
        found += [int(first) + int(at) for at in inside[:1]]
    if not found:
        return None
    return brief(index, min(found, key=lambda at: int(index.arrays["start_ns"][at])))


def _flows(index: Index, position: int) -> dict[str, Any]:
    """Causes and effects; an operator's effects are also those of the calls that lie in it."""
    causes, causes_total = _joined_to(index, "effect", [(position, position + 1)])
    inside = _ranges_inside(index, position)
    effects, effects_total = _joined_to(index, "cause", [(position, position + 1), *inside])
    return {
        "causes": causes, "causes_total": causes_total,
        "effects": effects, "effects_total": effects_total,
    }  # fmt: skip


def _ranges_inside(index: Index, position: int) -> list[tuple[int, int]]:
    """Positions [first, last) of what lies in an event, row by row of its track."""
    rows = _rows_inside(index, row_of(index, position))
    start = int(index.arrays["start_ns"][position])
    first, last = spans_of(index, rows, start, start + int(index.arrays["dur_ns"][position]))
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _rows_inside(index: Index, row: int) -> Array:
    """Rows that may hold what lies in an event of a row: those below it, and the other part."""
    tracks = index.about["tracks"]
    ends = np.cumsum([track["rows"] for track in tracks])
    part = int(np.searchsorted(ends, row, side="right"))
    other = range(0)
    if tracks[part].get("joins"):
        other = range(int(ends[part - 1]) - tracks[part - 1]["rows"], int(ends[part - 1]))
    return np.asarray([*other, *range(row + 1, int(groups(tracks)[part]))], dtype=np.int64)


def _joined_to(
    index: Index, own: str, positions: list[tuple[int, int]]
) -> tuple[list[dict[str, Any]], int]:
    """The other ends of flows of these events, told in full up to a number, and how many."""
    mine: Array = index.arrays[f"by_{own}_{own}"]
    other = index.arrays[f"by_{own}_{'cause' if own == 'effect' else 'effect'}"]
    kinds, kind = index.about["flow_kinds"], index.arrays[f"by_{own}_kind"]
    total = 0
    listed: list[dict[str, Any]] = []
    for begin, end in positions:
        first, last = (int(place) for place in np.searchsorted(mine, [begin, end]))
        total += last - first
        for at in range(first, min(last, first + MOST_FLOWS - len(listed))):
            listed.append({"flow": kinds[kind[at]], **brief(index, int(other[at]))})
    return listed, total


def arguments(run: Run, event_id: int) -> dict[str, Any]:
    """What the tables know besides: step, scope, and the columns of every table of arguments."""
    rows = run.sql("SELECT step, scope FROM events WHERE id = ?", [event_id]).fetchall()
    step, scope = rows[0] if rows else (None, None)
    known: list[dict[str, Any]] = []
    for table in _ARGUMENTS:
        columns = table.columns[1:]
        names = ", ".join(f'"{column.name}"' for column in columns)
        query = f"SELECT {names} FROM {table.name} WHERE event_id = ? LIMIT 1"
        for row in run.sql(query, [event_id]).fetchall():
            known += [
                {"name": column.name, "value": value, "doc": column.doc}
                for value, column in zip(row, columns, strict=True)
                if value is not None
            ]
    return {"step": step, "scope": scope, "arguments": known}
