"""What each scalar of a rank came to, in a small file with its tables: for lists of many runs.

It is written while the tables are built, from the columns that go into them, and is replaced when
they are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.store import array_file
from strobe.store.array_file import Array
from strobe.store.nullable import UNKNOWN
from strobe.store.strings import Strings

FILE = "metrics.summary"
# Raise it when what is stored, or how it is worked out, changes.
_VERSION = 2

# Columns that start with a value other than 0, and their types.
_INTEGERS = {
    "count": 0,
    "nan_count": 0,
    "infinite_count": 0,
    "lowest_step": UNKNOWN,
    "highest_step": UNKNOWN,
    "last_step": UNKNOWN,
    "last_ts_ns": UNKNOWN,
    "last_attempt": UNKNOWN,
    "min_step": UNKNOWN,
    "max_step": UNKNOWN,
}
_NUMBERS = {"last": np.nan, "min": np.nan, "max": np.nan}


class Summary(NamedTuple):
    """Columns with a row for each tag and source: see `MetricSummary`."""

    tags: list[str]
    sources: list[str]
    columns: dict[str, Array]
    hyperparameters: dict[str, str]


class MetricSummary:
    """Gathers the figures of each tag and source, part by part.

    `last` is what was logged last in the last attempt, whatever its step; `min` and `max` are over
    finite values of all attempts, with the step at which they occur first. `lowest_step`
    and `highest_step` are those of all its values.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}  # by tag and source
        self._columns: dict[str, Array] = {
            **{name: np.zeros(0, dtype=np.int64) for name in _INTEGERS},
            **{name: np.zeros(0) for name in _NUMBERS},
        }
        self.hyperparameters: dict[str, str] = {}

    def add(self, table: str, columns: Mapping[str, Any]) -> None:
        """Columns of a stored table of the rank, as they are written; most tables do not matter."""
        if table == "scalars" and len(columns.get("value", ())):
            self._add_scalars(columns)
        elif table == "hyperparameters" and columns:
            names, values = (_texts(columns[name]) for name in ("name", "value"))
            self.hyperparameters.update(zip(names, values, strict=True))

    def write(self, folder: Path) -> None:
        """Into the folder of the rank's tables; nothing where no metrics were logged."""
        if not self._numbers and not self.hyperparameters:
            return
        about = {
            "version": _VERSION,
            "tags": [tag for tag, _ in self._numbers],
            "sources": [source for _, source in self._numbers],
            "hyperparameters": self.hyperparameters,
        }
        array_file.write(folder / FILE, about, self._columns)

    def _add_scalars(self, columns: Mapping[str, Any]) -> None:
        tag, source = columns["tag"], columns["source"]
        pair = tag.codes.astype(np.int64) * len(source.values) + source.codes
        pairs, place = np.unique(pair, return_inverse=True)
        numbers = [self._number(tag, source, pair) for pair in pairs.tolist()]
        self._grow()
        code = np.array(numbers, dtype=np.int64)[place]
        attempt = np.asarray(columns["attempt"])
        order = np.lexsort((attempt, code))
        code, attempt = code[order], attempt[order]
        value = np.asarray(columns["value"], dtype=np.float64)[order]
        step, ts_ns = (_known(columns.get(name), len(code))[order] for name in ("step", "ts_ns"))
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        row = code[starts]
        self._count(row, value, starts)
        self._steps(row, step, starts)
        ends = np.append(starts[1:], len(code)) - 1
        is_later = attempt[ends] >= self._columns["last_attempt"][row]
        at, of = ends[is_later], row[is_later]
        for name, given in (("last", value), ("last_step", step),
                            ("last_ts_ns", ts_ns), ("last_attempt", attempt)):  # fmt: skip
            self._columns[name][of] = given[at]
        self._extremes(row, value, step, starts)

    def _number(self, tag: Strings, source: Strings, pair: int) -> int:
        of_tag, of_source = divmod(pair, len(source.values))
        key = (tag.values[of_tag], source.values[of_source])
        return self._numbers.setdefault(key, len(self._numbers))

    def _grow(self) -> None:
        new = len(self._numbers) - len(self._columns["count"])
        for name, filler in (*_INTEGERS.items(), *_NUMBERS.items()):
            column = self._columns[name]
            self._columns[name] = np.append(column, np.full(new, filler, dtype=column.dtype))

    def _count(self, row: Array, value: Array, starts: Array) -> None:
        counts = {"nan_count": np.isnan(value), "infinite_count": np.isinf(value)}
        for name, is_counted in counts.items():
            self._columns[name][row] += np.add.reduceat(is_counted.astype(np.int64), starts)
        self._columns["count"][row] += np.diff(np.append(starts, len(value)))

    def _steps(self, row: Array, step: Array, starts: Array) -> None:
        last = np.maximum.reduceat(step, starts)
        self._columns["highest_step"][row] = np.maximum(self._columns["highest_step"][row], last)
        # UNKNOWN is smaller than any step, and must not count as the first one.
        first = np.minimum.reduceat(np.where(step == UNKNOWN, -(UNKNOWN + 1), step), starts)
        before = self._columns["lowest_step"][row]
        first = np.where(before == UNKNOWN, first, np.minimum(first, before))
        self._columns["lowest_step"][row] = np.where(first == -(UNKNOWN + 1), UNKNOWN, first)

    def _extremes(self, row: Array, value: Array, step: Array, starts: Array) -> None:
        lengths = np.diff(np.append(starts, len(value)))
        is_finite = np.isfinite(value)
        for name, sign in (("min", 1.0), ("max", -1.0)):
            signed = np.where(is_finite, sign * value, np.inf)
            least = np.minimum.reduceat(signed, starts)
            position = np.where(signed == np.repeat(least, lengths), np.arange(len(value)), -1)
            at = np.minimum.reduceat(np.where(position < 0, len(value), position), starts)
            before = self._columns[name][row]
            is_new = np.isfinite(least) & ~(sign * before <= least)
            self._columns[name][row[is_new]] = value[at[is_new]]
            self._columns[f"{name}_step"][row[is_new]] = step[at[is_new]]


def read(folder: Path) -> Summary | None:
    """That of a rank's tables; None where they have none."""
    try:
        about, arrays = array_file.read(folder / FILE, is_mapped=False)
    except FileNotFoundError:
        return None
    if about.get("version") != _VERSION:
        return None
    return Summary(about["tags"], about["sources"], arrays, about["hyperparameters"])


def _known(given: Any, count: int) -> Array:
    """Integers of which some are null."""
    if given is None:
        return np.full(count, UNKNOWN, dtype=np.int64)
    mask = getattr(given, "mask", None)
    known: Array = given if mask is None else np.where(mask, UNKNOWN, given.data)
    return known


def _texts(column: Strings) -> list[str]:
    return ["" if code < 0 else column.values[code] for code in column.codes.tolist()]
