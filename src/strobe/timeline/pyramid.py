"""The levels of a timeline as they are stored: bytes where bytes will do."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from strobe.timeline import levels
from strobe.timeline.levels import Level
from strobe.timeline.rows import Array

# Rows are summed up in batches of about this many events, so that memory stays bounded.
_EVENTS_AT_ONCE = 2_000_000
# The part of a bucket that is covered, in these steps: within 0.2 % of the truth.
FULL = 255
# A count as a byte: 0 for none, else 1 + this many for each doubling.
COUNT_STEPS = 8

_COLUMNS = ("row", "bucket", "busy", "paint", "begun", "run_at", "run", "run_paint")


def add_levels(arrays: dict[str, Array], progress: Callable[[float], None]) -> list[int]:
    """Put the levels beside the events that they sum up; the shifts there are, finest first."""
    row_at = arrays["row_at"]
    rows = len(row_at) - 1
    if rows < 1:
        return []
    row = np.repeat(np.arange(rows), np.diff(row_at))
    top = levels.coarsest_shift(int((arrays["start_ns"] + arrays["dur_ns"]).max()))
    finest = min(levels.finest_shift(row, arrays["start_ns"]), top)
    shifts = list(range(finest, top + 1))
    parts: dict[int, list[dict[str, Array]]] = {shift: [] for shift in shifts}
    for first, last in _batches(row_at):
        cut = slice(int(row_at[first]), int(row_at[last]))
        for level in _pyramid(arrays, row[cut], cut, shifts):
            parts[level.shift].append(packed(level, arrays))
        progress(last / rows)
    for shift, found in parts.items():
        _store(arrays, shift, found, rows)
    return shifts


def _batches(row_at: Array) -> Iterator[tuple[int, int]]:
    """Ranges of whole rows."""
    first, rows = 0, len(row_at) - 1
    while first < rows:
        full = np.searchsorted(row_at, row_at[first] + _EVENTS_AT_ONCE, side="right") - 1
        last = max(first + 1, int(full))
        yield first, last
        first = last


def _pyramid(
    arrays: dict[str, Array], row: Array, cut: slice, shifts: list[int]
) -> Iterator[Level]:
    start, length = arrays["start_ns"][cut], arrays["dur_ns"][cut]
    position = np.arange(cut.start, cut.stop)
    level = levels.level_of_events(shifts[0], row, start, start + length, position)
    yield level
    for _ in shifts[1:]:
        level = levels.coarser(level, arrays["dur_ns"])
        yield level


def packed(level: Level, arrays: dict[str, Array]) -> dict[str, Array]:
    """The columns of a level as they are stored and sent."""
    paint, name = arrays["paint"], arrays["name"]
    running = np.flatnonzero(level.run)
    return {
        "row": level.row,
        "bucket": level.bucket,
        "busy": np.rint(level.cover_ns * (FULL / (1 << level.shift))).astype(np.uint8),
        "paint": paint[name[level.longest]],
        "begun": _count_bytes(level.begun),
        "run_at": running,
        "run": level.run[running],
        "run_paint": paint[name[level.runner[running]]],
    }


def _count_bytes(count: Array) -> Array:
    steps = 1 + COUNT_STEPS * np.log2(np.maximum(count, 1))
    return np.where(count > 0, np.rint(steps), 0).astype(np.uint8)


def _store(arrays: dict[str, Array], shift: int, parts: list[dict[str, Array]], rows: int) -> None:
    before = 0
    for part in parts:
        part["run_at"] = part["run_at"] + before
        before += len(part["row"])
    joined: dict[str, Any] = {
        column: np.concatenate([part[column] for part in parts]) for column in _COLUMNS
    }
    joined["row_at"] = np.searchsorted(joined.pop("row"), np.arange(rows + 1))
    for column in ("bucket", "run", "run_at"):
        joined[column] = _narrow(joined[column])
    for column, values in joined.items():
        arrays[f"{shift}/{column}"] = values


def _narrow(values: Array) -> Array:
    fits = not len(values) or int(values.max()) < 2**32
    return values.astype(np.uint32) if fits else values
