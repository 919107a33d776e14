"""Filter and sort any declared table as a user requests: name, time, order, top."""

import difflib
from typing import Any

import duckdb

from strobe.errors import UsageError
from strobe.messages import message
from strobe.model.schema import Table
from strobe.store.columns import SQL_TYPES

# What --min-time and --max-time filter: device time where the run has it, otherwise the first of
# these columns that the table has.
MAIN_TIMES = ("dur_ns", "total_ns", "operators_ns", "busy_ns", "mean_ns")

# A misspelled operator is still found at this similarity ("sofmax"); merely related ones are not.
ALIKE_RATIO = 0.92


def declared(
    connection: duckdb.DuckDBPyConnection, table: Table, query: str, order: str, **options: Any
) -> duckdb.DuckDBPyRelation:
    """The query with exactly the columns and types of the table, and the user's options applied.

    Options: name (fuzzy), type, scope (a module and everything in it), min_ns, max_ns, order_by
    ("self_ns", "-self_ns", "name"), top.
    """
    unknown = set(options) - _OPTIONS
    if unknown:
        raise UsageError.of(
            "errors/names.unknown-filter",
            table=table.name,
            names=", ".join(sorted(unknown)),
            known=", ".join(sorted(_OPTIONS)),
        )
    columns = ", ".join(f'"{c.name}"::{SQL_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
    where = " AND ".join(_conditions(table, options))
    text = f"SELECT {columns} FROM ({query})"
    if where:
        text = f"SELECT * FROM ({text}) WHERE {where}"
    order = order_sql(table, options.get("order_by")) or order
    if order:
        text += f" ORDER BY {order}"
    if options.get("top"):
        text += f" LIMIT {int(options['top'])}"
    return connection.sql(text)


def order_sql(table: Table, order_by: str | None) -> str:
    """Numbers descend, text ascends; a leading - or + overrides that."""
    terms = []
    for word in (order_by or "").split(","):
        name = word.strip().lstrip("+-")
        if not name:
            continue
        column = next((c for c in table.columns if c.name == name), None)
        if column is None:
            raise no_column(table, name)
        descending = column.type != "str"
        if word.strip()[0] in "+-":
            descending = word.strip()[0] == "-"
        terms.append(f'"{name}" {"DESC" if descending else "ASC"} NULLS LAST')
    return ", ".join(terms)


def no_column(table: Table, name: str) -> UsageError:
    near = difflib.get_close_matches(name, table.column_names, 1)
    known = ", ".join(table.column_names)
    hint = message("errors/names.near-column", near=near[0], known=known) if near else ""
    return UsageError.of(
        "errors/names.unknown-column", table=table.name, name=name, known=known, hint=hint
    )


def quoted(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


_OPTIONS = {"name", "type", "scope", "min_ns", "max_ns", "order_by", "top"}


def _conditions(table: Table, options: dict[str, Any]) -> list[str]:
    conditions = []
    if options.get("name"):
        _need(table, "name", "name")
        conditions.append(is_like("name", options["name"]))
    if options.get("type"):
        _need(table, "type", "type")
        conditions.append(f"lower(type) = lower({quoted(options['type'])})")
    if options.get("scope"):
        _need(table, "scope", "scope")
        conditions.append(is_within("scope", quoted(options["scope"].rstrip("."))))
    for option, sign in (("min_ns", ">="), ("max_ns", "<=")):
        if options.get(option) is not None:
            column = next((name for name in MAIN_TIMES if name in table.column_names), None)
            _need(table, column or "dur_ns", option)
            time = f"coalesce(device_ns, {column})" if _has_device_time(table) else column
            conditions.append(f"{time} {sign} {int(options[option])}")
    return conditions


def _has_device_time(table: Table) -> bool:
    return "device_ns" in table.column_names


def is_within(scope: str, ancestor: str) -> str:
    """SQL: a scope is the ancestor or inside it; both are SQL expressions."""
    return f"({ancestor} = '' OR {scope} = {ancestor} OR starts_with({scope}, {ancestor} || '.'))"


def is_like(column: str, wanted: str) -> str:
    """SQL: the name contains the wanted letters, ignoring case and separators, or is similar."""
    bare = r"regexp_replace(lower({}), '[\s_:.\-]+', '', 'g')"
    name, query = bare.format(column), bare.format(quoted(wanted))
    last = f"trim(regexp_replace(lower({column}), '^.*[:.]', ''), '_')"
    alike = f"jaro_winkler_similarity({last}, lower({quoted(wanted)})) >= {ALIKE_RATIO}"
    return f"(contains({name}, {query}) OR {alike})"


def _need(table: Table, column: str, option: str) -> None:
    if column not in table.column_names:
        raise UsageError.of(
            "errors/names.no-filter",
            table=table.name,
            option=option.replace("_ns", "_time"),
            known=", ".join(table.column_names),
        )
