"""Any stored table or analysis of a run: sorted, filtered and cut into pages by DuckDB.

`/api/runs/<id>/table/<name>` takes
- order, desc, limit, offset, columns: how rows are shown;
- q: text that need not be exact, in any column of text;
- where: `column:op:value`, several with commas or as several parameters;
- steps=a:b, rank=r: the table of these steps or this rank alone, analyses worked out anew for them;
- format: json (a page), or csv and json-file (all rows, as a file to save);
- anything else: the analysis's own options (name, type, scope, min_ns, max_ns, all_steps).
"""

import csv
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from strobe.analyse.lookup import declaration
from strobe.analyse.select import is_like, no_column, quoted
from strobe.errors import UsageError
from strobe.model.schema import Column, Table
from strobe.store.columns import SQL_TYPES
from strobe.web.question import CSV, JSON, Answer, Asked
from strobe.web.served_run import ServedRun

if TYPE_CHECKING:
    import duckdb

DEFAULT_ROWS = 200
# A page of more rows is a file to save: ask for it as one.
MOST_ROWS = 20_000
BATCH_ROWS = 20_000

_SHOWING = {"order", "desc", "limit", "offset", "columns", "q", "where", "steps", "rank", "format"}
_NUMBERS = {"min_ns", "max_ns"}
_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPERATIONS = (*_SIGNS, "has", "in", "null", "known")

_encoder = msgspec.json.Encoder(enc_hook=str)


def as_json(value: Any) -> Answer:
    """JSON proper: what is not a finite number is null, what JSON has no word for is text."""
    return Answer(_encoder.encode(value))


def answer(asked: Asked) -> Answer:
    if len(asked.words) != 1:
        raise UsageError.of("errors/pages.which-table")
    table = declaration(asked.words[0])
    params = asked.params
    opened = asked.run.narrowed(params.get("steps", ""), params.get("rank", ""))
    source = opened.source(table, _options(params))
    conditions = [*_where(table, params.get("where", ""))]
    if params.get("q"):
        conditions.append(_search(table, source, params["q"]))
    shown = _picked(table, params.get("columns", ""))
    query = f"FROM {source}"
    if conditions:
        query += f" WHERE {' AND '.join(conditions)}"
    order = _order(table, params)
    form = params.get("format", "json")
    if form == "json":
        return _page(opened, shown, query, order, params)
    if form not in ("csv", "json-file"):
        raise UsageError.of(
            "errors/pages.unknown-format", name=repr(form), known="json, csv, json-file"
        )
    batches = _batches(opened, f"{_select(shown)} {query}{order}")
    if form == "csv":
        return Answer(_csv(shown, batches), CSV, file_name=f"{asked.path.name}-{table.name}.csv")
    body = _json_file(shown, batches)
    return Answer(body, JSON, file_name=f"{asked.path.name}-{table.name}.json")


def described(columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    from strobe.show.text.cells import unit

    return [{"name": c.name, "type": c.type, "doc": c.doc, "unit": unit(c)} for c in columns]


def _page(opened: ServedRun, table: Table, query: str, order: str, params: Any) -> Answer:
    limit = _whole(params, "limit", DEFAULT_ROWS)
    offset = _whole(params, "offset", 0)
    if limit > MOST_ROWS:
        raise UsageError.of("errors/pages.too-many-rows", limit=f"{limit:,}", most=f"{MOST_ROWS:,}")
    page = f"{_select(table)} {query}{order} LIMIT {limit} OFFSET {offset}"
    rows = opened.run.connection.execute(page).fetchall()
    return as_json(
        {
            "ok": True,
            "table": table.name,
            "doc": table.doc,
            "columns": described(table.columns),
            "rows": rows,
            "total": opened.count(query),
            "offset": offset,
        }
    )


def _options(params: Any) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, text in params.items():
        if name in _SHOWING or not text:
            continue
        if name in _NUMBERS:
            options[name] = _whole(params, name, 0)
        elif name == "all_steps":
            options[name] = text not in ("0", "false")
        elif name in ("name", "type", "scope"):
            options[name] = text
        else:
            raise UsageError.of(
                "errors/pages.unknown-parameter",
                name=repr(name),
                known=", ".join(
                    sorted(_SHOWING | _NUMBERS | {"all_steps", "name", "type", "scope"})
                ),
            )
    return options


def _whole(params: Any, name: str, otherwise: int) -> int:
    text = params.get(name, "")
    if not text:
        return otherwise
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise UsageError.of("errors/pages.not-int", name=name, value=repr(text[:40]), example=100)
    return int(text)


def _column(table: Table, name: str) -> Column:
    column = next((c for c in table.columns if c.name == name), None)
    if column is None:
        raise no_column(table, name)
    return column


def _picked(table: Table, names: str) -> Table:
    if not names:
        return table
    columns = tuple(_column(table, name.strip()) for name in names.split(","))
    return Table(table.name, table.doc, columns)


def _select(table: Table) -> str:
    return "SELECT " + ", ".join(f'"{c.name}"' for c in table.columns)


def _order(table: Table, params: Any) -> str:
    """As asked; an analysis that is not ordered anew keeps the order it was made in."""
    if not params.get("order"):
        return ""
    column = _column(table, params["order"])
    way = "DESC" if params.get("desc", "0") not in ("", "0", "false") else "ASC"
    return f' ORDER BY "{column.name}" {way} NULLS LAST'


def _search(table: Table, source: str, text: str) -> str:
    """Anywhere in text, case and separators aside; a name need only be nearly so.

    Each text is looked at once, however many rows have it: names repeat a million times.
    """
    texts = [c.name for c in table.columns if c.type == "str"]
    if not texts:
        raise UsageError.of("errors/pages.no-text-column", table=table.name)
    found = [
        f'"{name}" IN (SELECT "{name}" FROM (SELECT DISTINCT "{name}" FROM {source}) '
        f"""WHERE {is_like(f'"{name}"', text)})"""
        for name in texts
    ]
    return "(" + " OR ".join(f"coalesce({one}, false)" for one in found) + ")"


def _where(table: Table, text: str) -> Iterator[str]:
    """`step:ge:3,name:has:a,b`: a comma begins a condition only where one follows it."""
    if not text:
        return
    names = "|".join(re.escape(name) for name in table.column_names)
    for part in re.split(rf",(?=(?:{names}):(?:{'|'.join(_OPERATIONS)})(?::|,|$))", text):
        name, _, rest = part.partition(":")
        operation, _, value = rest.partition(":")
        yield _condition(_column(table, name), operation, value)


def _condition(column: Column, operation: str, value: str) -> str:
    name = f'"{column.name}"'
    if operation == "null":
        return f"{name} IS NULL"
    if operation == "known":
        return f"{name} IS NOT NULL"
    if operation == "has":
        return f"contains(lower({name}::VARCHAR), lower({quoted(value)}))"
    if operation == "in":
        return f"{name} IN ({', '.join(_literal(column, one) for one in value.split('|'))})"
    if operation in _SIGNS:
        return f"{name} {_SIGNS[operation]} {_literal(column, value)}"
    raise UsageError.of(
        "errors/pages.unknown-operation", name=repr(operation), known=", ".join(_OPERATIONS)
    )


def _literal(column: Column, value: str) -> str:
    if column.type == "str":
        return quoted(value)
    if column.type == "bool":
        return "true" if value in ("1", "true", "yes") else "false"
    if not re.fullmatch(r"[+-]?\d{1,18}(\.\d{1,9})?([eE][+-]?\d{1,2})?", value, re.ASCII):
        raise UsageError.of("errors/pages.not-number", column=column.name, value=repr(value[:40]))
    return f"{value}::{'DOUBLE' if not value.lstrip('+-').isdecimal() else SQL_TYPES[column.type]}"


def _batches(opened: ServedRun, query: str) -> Iterator[list[tuple[Any, ...]]]:
    cursor: duckdb.DuckDBPyConnection = opened.run.connection.cursor()
    try:
        cursor.execute(query)
        while batch := cursor.fetchmany(BATCH_ROWS):
            yield batch
    finally:
        cursor.close()


def _csv(table: Table, batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[bytes]:
    from strobe.show.text.table import write_csv

    # One head, then batch by batch: a table of millions of rows is never held as text.
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(table.column_names)
    yield head.getvalue().encode()
    for batch in batches:
        out = io.StringIO()
        write_csv(table, iter([batch]), out)
        yield out.getvalue().split("\n", 1)[1].encode("utf-8", "replace")


def _json_file(table: Table, batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[bytes]:
    head = _encoder.encode({"ok": True, "table": table.name, "columns": described(table.columns)})
    yield head[:-1] + b',"rows":['
    separator = b"\n"
    for batch in batches:
        yield separator + b",\n".join(_encoder.encode(row) for row in batch)
        separator = b",\n"
    yield b"\n]}\n"
