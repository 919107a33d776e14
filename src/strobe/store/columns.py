"""Columns in memory: numpy arrays that become a declared table in a Parquet file."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.model.schema import ColumnType, Table
from strobe.store import parquet
from strobe.store.nullable import Nullable
from strobe.store.strings import Strings

if TYPE_CHECKING:  # loading it takes a while, in which others may read already
    import duckdb

SQL_TYPES: dict[ColumnType, str] = {
    "i64": "BIGINT",
    "f64": "DOUBLE",
    "str": "VARCHAR",
    "bool": "BOOLEAN",
}

# A masked array's masked entries are nulls.
Columns = Mapping[str, "np.ndarray[Any, Any] | Nullable | Strings"]


def write(table: Table, columns: Columns, path: Path, order_by: tuple[str, ...] = ()) -> None:
    """Write columns as the Parquet file of a declared table; a column left out is all null."""
    _refuse_undeclared(table, columns, path)
    count = row_count(columns)
    if order_by and count > 1:
        keys = [_order(columns[name]) for name in reversed(order_by)]
        columns = picked(columns, np.lexsort(keys))
    parquet.write(path, table, columns, count)


def _order(given: Any) -> "np.ndarray[Any, Any]":
    """Numbers that are in the order of the values."""
    if not isinstance(given, Strings):
        values: np.ndarray[Any, Any] = given
        return values
    place = np.zeros(len(given.values) + 1, dtype=np.int64)
    place[np.argsort(np.array(given.values, dtype=object))] = np.arange(len(given.values))
    places: np.ndarray[Any, Any] = place[given.codes]
    return places


def warm_up() -> None:
    """What DuckDB takes longest for the first time, done before anybody waits for it."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("warm_up", {"a": np.arange(4)})
        connection.sql("SELECT a, count(*) FROM warm_up GROUP BY a").fetchall()


def relation_sql(
    connection: "duckdb.DuckDBPyConnection",
    table: Table,
    columns: Columns,
    prefix: str = "",
) -> str:
    """Register the arrays with a connection; the text of a query that gives the typed table."""
    # DuckDB refuses a table without rows made of object arrays, and one without columns.
    if not has_rows(columns):
        nulls = ", ".join(f'NULL::{SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
        return f"SELECT {nulls} LIMIT 0"
    name = f"{prefix}{table.name}_columns"
    arrays: dict[str, Any] = {}
    selected, joins = [], []
    for column in table.columns:
        given = columns.get(column.name)
        sql_type = SQL_TYPES[column.type]
        if given is None:
            selected.append(f'NULL::{sql_type} AS "{column.name}"')
            continue
        if isinstance(given, Strings):
            texts = f"{name}_{column.name}"
            connection.register(texts, _numbered(given.values))
            joins.append(f'LEFT JOIN {texts} ON {texts}.code = a."{column.name}"')
            selected.append(f'{texts}.text AS "{column.name}"')
            arrays[column.name] = given.codes
        else:
            parts, value = _with_nulls(column.name, given)
            arrays |= parts
            if column.type == "f64" and not column.nullable:
                parts, value = _with_nan(column.name, given, value)
                arrays |= parts
            selected.append(f'({value})::{sql_type} AS "{column.name}"')
    connection.register(name, arrays)
    return f"SELECT {', '.join(selected)} FROM {name} a {' '.join(joins)}"


def registered(
    connection: "duckdb.DuckDBPyConnection", name: str, columns: Mapping[str, Any]
) -> str:
    """Register arrays with a connection under a name; the query that gives them as a table."""
    arrays: dict[str, Any] = {}
    selected = []
    for column, given in columns.items():
        parts, value = _with_nulls(column, given)
        arrays |= parts
        selected.append(f'{value} AS "{column}"')
    connection.register(name, arrays)
    return f"SELECT {', '.join(selected)} FROM {name} a"


def _with_nulls(name: str, given: Any) -> tuple[dict[str, Any], str]:
    """The arrays that DuckDB needs for one, and how its values are written in SQL."""
    if isinstance(given, Nullable):
        given = given.masked()
    if _takes_masks() or not np.ma.is_masked(given):
        return {name: given}, f'a."{name}"'
    mask = f"{name} is null"
    arrays = {name: np.ma.getdata(given), mask: np.ma.getmaskarray(given)}
    return arrays, f'CASE WHEN NOT a."{mask}" THEN a."{name}" END'


def _with_nan(name: str, given: Any, value: str) -> tuple[dict[str, Any], str]:
    """DuckDB takes NaN of an array for null; where a column has no nulls, NaN is a value."""
    is_nan = np.isnan(given.data if isinstance(given, Nullable) else given)
    if not is_nan.any():
        return {}, value
    mask = f"{name} is nan"
    return {mask: is_nan}, f"CASE WHEN a.\"{mask}\" THEN 'nan' ELSE {value} END"


@functools.cache
def _takes_masks() -> bool:
    """Before release 2, DuckDB takes the values of a masked array and not its mask."""
    import duckdb

    return int(duckdb.__version__.split(".")[0]) >= 2


def picked(columns: Columns, rows: Any) -> dict[str, Any]:
    """The same columns with these rows."""
    return {
        name: Strings(column.codes[rows], column.values)
        if isinstance(column, Strings)
        else column[rows]
        for name, column in columns.items()
    }


def has_rows(columns: Columns) -> bool:
    return row_count(columns) > 0


def row_count(columns: Columns) -> int:
    return max(map(_length, columns.values()), default=0)


def _length(given: "np.ndarray[Any, Any] | Nullable | Strings") -> int:
    return len(given.codes if isinstance(given, Strings) else given)


def _numbered(values: list[str]) -> dict[str, Any]:
    texts = np.empty(max(1, len(values)), dtype=object)
    texts[:] = _encodable(values) or [""]
    return {"code": np.arange(len(texts), dtype=np.int32), "text": texts}


def _encodable(values: list[str]) -> list[str]:
    """Half of a surrogate pair is no text for DuckDB; it shows as \\udc80."""
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return [text.encode("utf-8", "backslashreplace").decode() for text in values]
    return values


def _refuse_undeclared(table: Table, columns: Columns, path: Path) -> None:
    extra = set(columns) - set(table.column_names)
    if extra:
        raise ValueError(f"table {table.name!r} has no column {', '.join(sorted(extra))}")
    for column in table.columns:
        missing = _null_count(columns.get(column.name)) if columns else 0
        if missing and not column.nullable:
            raise UnreadableTrace.of(
                "errors/run.missing-values",
                where=str(path),
                count=missing,
                table=table.name,
                column=column.name,
                doc=column.doc,
            )


def _null_count(given: "np.ndarray[Any, Any] | Nullable | Strings | None") -> int:
    if given is None:
        return 1
    if isinstance(given, Strings):
        return int((given.codes < 0).sum())
    return int(np.count_nonzero(getattr(given, "mask", False)))
