"""Rows of stored tables as they come out of JSON, gathered into the columns that are stored."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from strobe.ingest.codes import Array, Codes
from strobe.model.schema import RANK_SHIFT, Column, ColumnType, Table
from strobe.store.strings import Strings

_DTYPES: dict[ColumnType, Any] = {"i64": np.int64, "f64": np.float64, "bool": np.bool_}
_PYTHON: dict[ColumnType, Any] = {"i64": int, "f64": float, "bool": bool, "str": str}

END_OF_TIME_NS = 2**62


class TableRows:
    """One table: batches of columns as lists go in, where null is None; arrays come out."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._parts: dict[str, list[Array]] = {name: [] for name in table.column_names}
        self._texts: dict[str, Codes[str]] = {
            column.name: Codes() for column in table.columns if column.type == "str"
        }
        self._count = self.left_out = 0
        row = msgspec.defstruct(
            "Row", [(c.name, _PYTHON[c.type] | None, None) for c in table.columns], gc=False
        )
        self.decode = msgspec.json.Decoder(list[row]).decode  # type: ignore[valid-type]

    def __len__(self) -> int:
        return self._count

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
        for name, array in arrays.items():
            self._parts[name].append(array if whole.all() else array[whole])
        self._count += int(whole.sum())
        self.left_out += int((~whole).sum())

    def columns(self) -> dict[str, Any]:
        return {column.name: self._whole(column) for column in self.table.columns}

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

    def _whole(self, column: Column) -> "Array | Strings":
        parts = self._parts[column.name]
        if column.type == "str":
            codes = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
            return Strings(codes, list(self._texts[column.name]))
        nothing = np.zeros(0, dtype=_DTYPES[column.type])
        if not any(isinstance(part, np.ma.MaskedArray) and part.mask.any() for part in parts):
            return np.concatenate([nothing, *(np.ma.getdata(part) for part in parts)])
        whole: Array = np.ma.concatenate([nothing, *parts])  # type: ignore[no-untyped-call]
        return whole


def moved(tables: dict[str, dict[str, Any]], old: int, new: int) -> None:
    """Make them the tables of another rank: its number stands in the ids above RANK_SHIFT."""
    for columns in tables.values():
        for name in columns:
            if name == "rank":
                columns[name] = np.full(len(columns[name]), new, dtype=np.int64)
            elif name == "id" or name.endswith("_id"):
                columns[name] = columns[name] + ((new - old) << RANK_SHIFT)


def texts(column: Strings) -> list[str | None]:
    return [None if code < 0 else column.values[code] for code in column.codes.tolist()]
