"""Columns in memory: numpy arrays that become a declared table in a Parquet file."""

import functools
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.model.schema import ColumnType, Table
from strobe.store.strings import Strings

if TYPE_CHECKING:  # loading it takes a while, in which others may read already
    import duckdb

SQL_TYPES: dict[ColumnType, str] = {
    "i64": "BIGINT",
    "f64": "DOUBLE",
    "str": "VARCHAR",
    "bool": "BOOLEAN",
}


# Of so few rows DuckDB takes the texts themselves quicker than it makes a type and joins it.
_FEW_ROWS = 40_000

# Of more texts than this only those are handed on that occur: a part of a long run has few of them.
_MANY_TEXTS = 4_096

# A masked array's masked entries are nulls.
Columns = Mapping[str, "np.ndarray[Any, Any] | Strings"]


def write(table: Table, columns: Columns, path: Path, order_by: str = "") -> None:
    """Write columns as the Parquet file of a declared table; a column left out is all null."""
    _refuse_undeclared(table, columns, path)
    with _database().cursor() as connection:
        source = relation_sql(connection, table, columns, as_enums=True)
        order = f" ORDER BY {order_by}" if order_by else ""
        target = str(path).replace("'", "''")
        connection.execute(
            f"COPY (SELECT * FROM ({source}){order}) TO '{target}'"
            " (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE 122880)"
        )


def rows_in(files: list[Path]) -> int:
    """How many rows Parquet files have, by what they say of themselves."""
    with _database().cursor() as connection:
        query = "SELECT coalesce(sum(num_rows), 0) FROM parquet_file_metadata($files)"
        found = connection.execute(query, {"files": [str(file) for file in files]}).fetchall()
    return int(found[0][0])


_opening = threading.Lock()


def _database() -> "duckdb.DuckDBPyConnection":
    """Who comes while another thread opens it waits for that, and opens none of its own."""
    with _opening:
        return _opened()


@functools.cache
def _opened() -> "duckdb.DuckDBPyConnection":
    """One for all tables: opening it takes longer than writing a small table.

    Objects are texts to it, always: it would look at a thousand of them to find out.
    """
    import duckdb

    return duckdb.connect(config={"threads": 2, "pandas_analyze_sample": 0})


def warm_up() -> None:
    """What takes longest the first time, done before anybody waits for it."""
    with _database().cursor() as connection:
        connection.register("warm_up", {"a": np.arange(4)})
        connection.sql("SELECT a, count(*) FROM warm_up GROUP BY a").fetchall()


def relation_sql(
    connection: "duckdb.DuckDBPyConnection",
    table: Table,
    columns: Columns,
    prefix: str = "",
    as_enums: bool = False,
) -> str:
    """Register the arrays with a connection; the text of a query that gives the typed table.

    As enums, many texts are written to Parquet three times quicker, and are plain text when read.
    """
    # DuckDB refuses a table without rows made of object arrays, and one without columns.
    if not has_rows(columns):
        nulls = ", ".join(f'NULL::{SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
        return f"SELECT {nulls} LIMIT 0"
    columns = {name: _occurring(given) for name, given in columns.items()}
    if as_enums and max(map(_length, columns.values())) <= _FEW_ROWS:
        columns = {name: _as_objects(given) for name, given in columns.items()}
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
            if as_enums:
                connection.execute(
                    f"CREATE TEMP TYPE {texts}_enum AS ENUM (SELECT DISTINCT text FROM {texts})"
                )
                source = f"(SELECT code, text::{texts}_enum AS text FROM {texts}) AS {texts}"
            else:
                source = texts
            joins.append(f'LEFT JOIN {source} ON {texts}.code = a."{column.name}"')
            selected.append(f'{texts}.text AS "{column.name}"')
            arrays[column.name] = given.codes
        else:
            parts, value = _with_nulls(column.name, given)
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
    if _takes_masks() or not np.ma.is_masked(given):
        return {name: given}, f'a."{name}"'
    mask = f"{name} is null"
    arrays = {name: np.ma.getdata(given), mask: np.ma.getmaskarray(given)}
    return arrays, f'CASE WHEN NOT a."{mask}" THEN a."{name}" END'


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
    return any(_length(given) for given in columns.values())


def _length(given: "np.ndarray[Any, Any] | Strings") -> int:
    return len(given.codes if isinstance(given, Strings) else given)


def _occurring(given: "np.ndarray[Any, Any] | Strings") -> "np.ndarray[Any, Any] | Strings":
    if not isinstance(given, Strings) or len(given.values) <= _MANY_TEXTS:
        return given
    used = np.unique(given.codes)
    used = used[used >= 0]
    codes = np.where(given.codes >= 0, np.searchsorted(used, given.codes), -1)
    return Strings(codes.astype(np.int32), [given.values[code] for code in used.tolist()])


def _as_objects(given: "np.ndarray[Any, Any] | Strings") -> "np.ndarray[Any, Any]":
    if not isinstance(given, Strings):
        return given
    texts = np.empty(len(given.values) + 1, dtype=object)  # the last one is the null of code -1
    texts[:-1] = _encodable(given.values)
    objects: np.ndarray[Any, Any] = texts[given.codes]
    return objects


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
            raise UnreadableTrace(
                f"{missing} rows of table {table.name!r} have no {column.name!r}",
                where=str(path),
                hint=f"the reader must fill it: {column.doc}",
            )


def _null_count(given: "np.ndarray[Any, Any] | Strings | None") -> int:
    if given is None:
        return 1
    if isinstance(given, Strings):
        return int((given.codes < 0).sum())
    return int(np.ma.getmaskarray(given).sum()) if isinstance(given, np.ma.MaskedArray) else 0
