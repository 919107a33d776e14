"""Rows of stored tables as they come out of JSON, gathered into the columns that are stored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from strobe.ingest.trace.codes import Array, Codes
from strobe.ingest.trace.column_spool import Columns, Pile
from strobe.ingest.trace.trace import MOMENTS
from strobe.model.schema import EVENTS, LINKS, RANK_SHIFT, Column, ColumnType, Table
from strobe.store.strings import Strings

_DTYPES: dict[ColumnType, Any] = {"i64": np.int64, "f64": np.float64, "bool": np.bool_}
_PYTHON: dict[ColumnType, Any] = {"i64": int, "f64": float, "bool": bool, "str": str}

END_OF_TIME_NS = 2**62
PART_ROWS = 200_000
_HELD_ROWS = 20_000


class TableRows:
    """One table: batches of columns as lists go in, where null is None; arrays come out.

    There may be more of them than memory holds.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._parts = Pile(_HELD_ROWS)
        self._shift_ns = 0
        self._first_ns: int | None = None
        self._ranks = (0, 0)  # that it was of, and is of now
        self._texts: dict[str, Codes[str]] = {
            column.name: Codes() for column in table.columns if column.type == "str"
        }
        self.left_out = 0
        row = msgspec.defstruct(
            "Row", [(c.name, _PYTHON[c.type] | None, None) for c in table.columns], gc=False
        )
        self.decode = msgspec.json.Decoder(list[row]).decode  # type: ignore[valid-type]

    def __len__(self) -> int:
        return self._parts.rows

    def add(self, columns: Mapping[str, Sequence[Any] | Array]) -> None:
        """Columns of equal length; one that is left out is all null."""
        count = len(columns[self.table.columns[0].name])
        arrays = {}
        for column in self.table.columns:
            values = columns.get(column.name)
            arrays[column.name] = self._array(column, [None] * count if values is None else values)
            if len(arrays[column.name]) != count:
                raise ValueError(f"column {column.name!r} has another length than the others")
        whole = ~self._lacks_something(arrays, count)
        self.left_out += int((~whole).sum())
        if not whole.any():
            return
        if not whole.all():
            arrays = {name: array[whole] for name, array in arrays.items()}
        self._parts.append(arrays)
        if "ts_ns" in arrays:
            known = np.ma.compressed(arrays["ts_ns"])  # a metric need not have a time
            firsts = [] if self._first_ns is None else [self._first_ns]
            firsts += [int(known.min())] if len(known) else []
            self._first_ns = min(firsts, default=None)

    def first_ns(self) -> int | None:
        return None if self._first_ns is None else self._first_ns + self._shift_ns

    def shift(self, by_ns: int) -> None:
        self._shift_ns += by_ns

    def move(self, old: int, new: int) -> None:
        """Make it a table of another rank: its number stands in the ids above RANK_SHIFT."""
        self._ranks = (old, new)

    def parts(self) -> Iterator[dict[str, Any]]:
        """What tells of events in parts, the rest as one; it is empty afterwards."""
        in_parts = self.table in (EVENTS, LINKS) or self.table.name.endswith("_args")
        held, rows = list[Columns](), 0
        for part in self._parts:
            held.append(part)
            rows += len(part[self.table.columns[0].name])
            if in_parts and rows > PART_ROWS:
                yield self._joined(held)
                held, rows = [], 0
        if held or not len(self):
            yield self._joined(held)
        self._parts.clear()

    def _joined(self, parts: list[Columns]) -> dict[str, Any]:
        return {
            column.name: self._whole(column, [part[column.name] for part in parts])
            for column in self.table.columns
        }

    def _lacks_something(self, arrays: dict[str, Array], count: int) -> Array:
        """Rows without what every row must have, or at times that cannot be."""
        result = np.zeros(count, dtype=bool)
        for column in self.table.columns:
            array = arrays[column.name]
            if not column.nullable:
                result |= array < 0 if column.type == "str" else np.ma.getmaskarray(array)
            if column.name.endswith("_ns"):
                result |= np.abs(np.ma.filled(array, 0)) >= END_OF_TIME_NS
        return result

    def _array(self, column: Column, values: Sequence[Any] | Array) -> Array:
        if isinstance(values, np.ndarray):
            return values
        if column.type == "str":
            codes = self._texts[column.name]
            return np.fromiter(
                (-1 if value is None else codes[str(value)] for value in values), np.int32
            )
        nulls = [value is None for value in values]
        filled = [0 if value is None else value for value in values]
        array: Array = np.ma.masked_array(np.array(filled, dtype=_DTYPES[column.type]), mask=nulls)
        return array

    def _whole(self, column: Column, parts: list[Array]) -> "Array | Strings":
        if column.type == "str":
            codes = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
            return Strings(codes, list(self._texts[column.name]))
        nothing = np.zeros(0, dtype=_DTYPES[column.type])
        whole: Array
        if any(isinstance(part, np.ma.MaskedArray) and part.mask.any() for part in parts):
            whole = np.ma.concatenate([nothing, *parts])  # type: ignore[no-untyped-call]
        else:
            whole = np.concatenate([nothing, *(np.ma.getdata(part) for part in parts)])
        return self._placed(column.name, whole)

    def _placed(self, name: str, column: Array) -> Array:
        """At the zero of time and in the rank that it was moved to."""
        old, new = self._ranks
        if name in MOMENTS:
            return column + self._shift_ns
        if name == "rank":
            return np.full(len(column), new, dtype=np.int64)
        if name == "id" or name.endswith("_id"):
            return column + ((new - old) << RANK_SHIFT)
        return column


def texts(column: Strings) -> list[str | None]:
    return [None if code < 0 else column.values[code] for code in column.codes.tolist()]
