"""Training metrics on their way into the stored tables: there may be more than memory holds."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from strobe.ingest.trace.codes import Array, Codes
from strobe.ingest.trace.column_spool import Pile
from strobe.model.schema import METRIC_TABLES, Column, Table
from strobe.store.nullable import UNKNOWN as UNKNOWN
from strobe.store.nullable import Nullable
from strobe.store.strings import Strings

_NUMBERS, _TEXTS = 400_000, 2_000  # rows in memory: of numbers; with texts, which may be long
_DTYPES = {"i64": np.int64, "f64": np.float64}
_PART_ROWS = {_NUMBERS: 400_000, _TEXTS: 20_000}


class MetricRows:
    """The rows of one table.

    A column is an array; unknown numbers are UNKNOWN or NaN, unless NaN is a value of the column.
    A column of text has either the texts themselves or their numbers in `codes`.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.codes: dict[str, Codes[str]] = {
            column.name: Codes() for column in table.columns if column.type == "str"
        }
        held_rows = _NUMBERS if table.name == "scalars" else _TEXTS
        self._part_rows = _PART_ROWS[held_rows]
        self._rows = Pile(held_rows)
        self._first_ns: int | None = None
        self._shift_ns = 0

    def __len__(self) -> int:
        return self._rows.rows

    def add(self, columns: Mapping[str, Array]) -> None:
        """Columns of one length; one that is left out is null."""
        count = len(next(iter(columns.values())))
        self._rows.append(
            {c.name: columns[c.name] if c.name in columns else _unknown(c, count)
             for c in self.table.columns if c.name != "rank"}
        )  # fmt: skip
        if "ts_ns" in columns:
            known = columns["ts_ns"][columns["ts_ns"] != UNKNOWN]
            if len(known):
                first = int(known.min())
                self._first_ns = first if self._first_ns is None else min(first, self._first_ns)

    def add_row(self, **values: Any) -> None:
        """A value that is None or left out is null."""
        columns = (column for column in self.table.columns if column.name != "rank")
        self.add({column.name: _one(column, values.get(column.name)) for column in columns})

    def add_all(self, other: "MetricRows") -> None:
        """The rows of another trace, which has the same zero of time."""
        for part in other._rows:
            moved = {name: self._renumbered(name, values, other) for name, values in part.items()}
            if "ts_ns" in moved:
                moved["ts_ns"] = _shifted(moved["ts_ns"], other._shift_ns - self._shift_ns)
            self.add(moved)
        other._rows.clear()

    def first_ns(self) -> int | None:
        return None if self._first_ns is None else self._first_ns + self._shift_ns

    def shift(self, by_ns: int) -> None:
        self._shift_ns += by_ns

    def parts(self, rank: int) -> Iterator[dict[str, Any]]:
        """All rows as columns of the declared table; there are none afterwards."""
        for part in self._rows.bunches(self._part_rows):
            count = len(next(iter(part.values())))
            part["rank"] = np.full(count, rank, dtype=np.int64)
            if "ts_ns" in part:
                part["ts_ns"] = _shifted(part["ts_ns"], self._shift_ns)
            yield {
                column.name: self._stored(column, part[column.name])
                for column in self.table.columns if column.name in part
            }  # fmt: skip
        self._rows.clear()

    def _renumbered(self, name: str, values: Array, other: "MetricRows") -> Array:
        if name not in self.codes or values.dtype == object:
            return values
        table = self.codes[name].of(other.codes[name])
        found: Array = table[values]
        return found

    def _stored(self, column: Column, values: Array) -> Any:
        if column.type == "str":
            return self._strings(column.name, values)
        if not column.nullable:
            return values.astype(_DTYPES[column.type], copy=False)
        is_null = np.isnan(values) if column.type == "f64" else values == UNKNOWN
        return Nullable(np.where(is_null, 0, values).astype(_DTYPES[column.type]), is_null)

    def _strings(self, name: str, values: Array) -> Strings:
        if values.dtype != object:
            return Strings(values.astype(np.int32), list(self.codes[name]))
        own = Codes[str]()
        codes = np.fromiter((-1 if v is None else own[v] for v in values), np.int32, len(values))
        return Strings(codes, list(own))


class Metrics(dict[str, MetricRows]):
    """The rows of every table of metrics, by its name."""

    def __init__(self) -> None:
        super().__init__({table.name: MetricRows(table) for table in METRIC_TABLES})

    def first_ns(self) -> int | None:
        known = [at for at in (rows.first_ns() for rows in self.values()) if at is not None]
        return min(known, default=None)

    def shift(self, by_ns: int) -> None:
        for rows in self.values():
            rows.shift(by_ns)

    def take(self, other: "Metrics") -> None:
        for name, rows in other.items():
            self[name].add_all(rows)

    def parts(self, rank: int) -> Iterator[dict[str, dict[str, Any]]]:
        for name, rows in self.items():
            for columns in rows.parts(rank):
                yield {name: columns}


def _one(column: Column, value: Any) -> Array:
    if column.type == "str":
        return np.array([value], dtype=object)
    if value is None:
        value = np.nan if column.type == "f64" else UNKNOWN
    return np.array([value], dtype=_DTYPES[column.type])


def _unknown(column: Column, count: int) -> Array:
    """Nulls, in as few bytes as they can have."""
    if column.type == "str":
        return np.full(count, -1, dtype=np.int8)
    if column.type == "f64":
        return np.full(count, np.nan, dtype=np.float32)
    return np.full(count, UNKNOWN, dtype=np.int64)


def _shifted(ts_ns: Array, by_ns: int) -> Array:
    moved: Array = np.where(ts_ns == UNKNOWN, UNKNOWN, ts_ns + by_ns)
    return moved


def constant(value: str, count: int) -> Array:
    """The same text for each of these rows."""
    texts = np.empty(count, dtype=object)
    texts[:] = value
    return texts
