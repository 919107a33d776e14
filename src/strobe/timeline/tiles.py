"""What to draw of some rows between two buckets of time, no finer than asked for."""

from typing import Any, NamedTuple

import numpy as np

from strobe.errors import UsageError
from strobe.timeline.index import Index
from strobe.timeline.levels import level_of_events
from strobe.timeline.pyramid import FULL, packed
from strobe.timeline.rows import Array
from strobe.timeline.window import first_at_least, joined, spans_of

# Buckets of a tile are counted in 16 bits.
MOST_BUCKETS = 65_535
# Buckets of two days; times still fit into 64 bits with room to spare.
_MOST_SHIFT = 48
# Past it the finest level is sent instead of events one by one: it is at most a few pixels coarser.
_MOST_EVENTS = 1_000_000


class Tile(NamedTuple):
    """`count_of_row` entries for each row, in order of x; the first bucket is `first_bucket`.

    An entry of one bucket tells how much of it is covered; a wider one is an event that fills it.
    """

    shift: int
    first_bucket: int
    buckets: int
    count_of_row: Array
    paint: Array
    x: Array
    width: Array
    busy: Array
    # How many events begin in it, as pyramid.COUNT_STEPS tells.
    begun: Array


def tile(index: Index, rows: list[int], shift: int, first: int, last: int) -> Tile:
    """Buckets [first, last) of 2**shift ns from the origin, of these rows."""
    is_within = 0 <= first < last <= min(first + MOST_BUCKETS, 2**62 >> max(shift, 0))
    if not is_within or not 0 <= shift <= _MOST_SHIFT:
        raise UsageError.of(
            "errors/pages.bad-tile",
            first=first,
            last=last,
            level=shift,
            most=MOST_BUCKETS,
            highest=_MOST_SHIFT,
        )
    chosen = np.asarray(rows, dtype=np.int64)
    if len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < index.rows:
        raise UsageError.of("errors/pages.no-row", last=index.rows - 1)
    shifts = index.about["shifts"]
    if not shifts or not len(chosen):
        return _emitted(shift, first, last, chosen, _nothing())
    if shift not in shifts:
        begin, end = spans_of(index, chosen, first << shift, last << shift)
        if int((end - begin).sum()) <= _MOST_EVENTS:
            return _emitted(shift, first, last, chosen, _of_events(index, begin, end, shift))
    if shift > shifts[-1]:
        raise UsageError.of("errors/pages.no-level", level=shift, highest=shifts[-1])
    coarser = max(shift, shifts[0])
    by = coarser - shift
    first, last = first >> by, ((last - 1) >> by) + 1
    return _emitted(coarser, first, last, chosen, _stored(index, chosen, coarser, first, last))


def _nothing() -> dict[str, Array]:
    none = np.zeros(0, dtype=np.int64)
    columns = ("row", "bucket", "busy", "paint", "begun", "run", "run_paint")
    return {column: none for column in columns}


def _of_events(index: Index, begin: Array, end: Array, shift: int) -> dict[str, Array]:
    """Made on the spot, from few enough events; rows are numbered as they were asked for."""
    position = joined(begin, end)
    row = np.repeat(np.arange(len(begin)), end - begin)
    start = index.arrays["start_ns"][position]
    stop = start + index.arrays["dur_ns"][position]
    columns = packed(level_of_events(shift, row, start, stop, position), index.arrays)
    return _spread(columns, columns["run_at"])


def _spread(columns: dict[str, Array], run_at: Array) -> dict[str, Array]:
    """Runs beside every entry instead of only where there is one."""
    for name in ("run", "run_paint"):
        wide = np.zeros(len(columns["bucket"]), dtype=columns[name].dtype)
        wide[run_at] = columns[name]
        columns[name] = wide
    return columns


def _stored(index: Index, rows: Array, shift: int, first: int, last: int) -> dict[str, Array]:
    of = {name.partition("/")[2]: array for name, array in index.arrays.items()
          if name.startswith(f"{shift}/")}  # fmt: skip
    low, high = of["row_at"][rows], of["row_at"][rows + 1]
    begin = first_at_least(of["bucket"], low, high, first)
    end = first_at_least(of["bucket"], begin, high, last)
    # The run of the entry before may reach into the tile.
    begin = np.maximum(begin - 1, low)
    at = joined(begin, end)
    columns = {name: of[name][at] for name in ("bucket", "busy", "paint", "begun")}
    columns["row"] = np.repeat(np.arange(len(rows)), end - begin)
    r0, r1 = np.searchsorted(of["run_at"], begin), np.searchsorted(of["run_at"], end)
    runs = joined(r0, r1)
    shifted = np.repeat(np.append(0, np.cumsum(end - begin)[:-1]) - begin, r1 - r0)
    columns["run"], columns["run_paint"] = of["run"][runs], of["run_paint"][runs]
    return _spread(columns, of["run_at"][runs].astype(np.int64) + shifted)


def _emitted(shift: int, first: int, last: int, rows: Array, columns: dict[str, Array]) -> Tile:
    """Entries and, after those with a run, the run; cut to the tile."""
    run = columns["run"].astype(np.int64)
    pieces = 1 + (run > 0)
    of = np.repeat(np.arange(len(run)), pieces)
    is_run = np.zeros(len(of), dtype=bool)
    is_run[np.cumsum(pieces)[run > 0] - 1] = True
    start = columns["bucket"].astype(np.int64)[of] + is_run
    stop = np.minimum(start + np.where(is_run, run[of], 1), last)
    start = np.maximum(start, first)
    seen = stop > start
    of, is_run, start, stop = of[seen], is_run[seen], start[seen], stop[seen]
    counts: Any = np.bincount(columns["row"][of], minlength=len(rows))
    return Tile(
        shift,
        first,
        last - first,
        counts.astype(np.uint32),
        np.where(is_run, columns["run_paint"][of], columns["paint"][of]).astype(np.uint32),
        (start - first).astype(np.uint16),
        (stop - start).astype(np.uint16),
        np.where(is_run, FULL, columns["busy"][of]).astype(np.uint8),
        np.where(is_run, 0, columns["begun"][of]).astype(np.uint8),
    )
