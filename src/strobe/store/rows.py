"""Rows of plain values as the columns of a declared table, for tables of few rows."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from strobe.model.table import Column, ColumnType, Table
from strobe.store.nullable import Nullable
from strobe.store.strings import Strings

_DTYPES: dict[ColumnType, Any] = {"i64": np.int64, "f64": np.float64, "bool": np.bool_}


def as_columns(table: Table, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A column that a row lacks, or that is None in it, is null there."""
    rows = list(rows)
    if not rows:
        return {}
    return {
        column.name: _column(column, [row.get(column.name) for row in rows])
        for column in table.columns
    }


def _column(column: Column, values: list[Any]) -> Any:
    if column.type == "str":
        numbers: dict[str, int] = {}
        codes = [-1 if v is None else numbers.setdefault(v, len(numbers)) for v in values]
        return Strings(np.array(codes, dtype=np.int32), list(numbers))
    known = [0 if value is None else value for value in values]
    array = np.array(known, dtype=_DTYPES[column.type])
    mask = np.array([value is None for value in values], dtype=np.bool_)
    return Nullable(array, mask) if mask.any() else array
