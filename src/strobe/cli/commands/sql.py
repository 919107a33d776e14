"""Query the tables of a run with SQL."""

import argparse
import sys
from typing import Any

from strobe.cli.opening import add_output_arguments, open_run, paper, whole_number
from strobe.errors import UsageError
from strobe.messages import localized


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help=localized("cli/parser.run"))
    parser.add_argument("query", metavar="QUERY", help=localized("cli/sql.query"))
    parser.add_argument(
        "-n", "--top", type=whole_number, metavar="N", help=localized("cli/show.top")
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import duckdb

    from strobe.show.text import table as show

    query = sys.stdin.read() if args.query == "-" else args.query
    query = _read_only(query)
    with open_run(args.run_dir) as opened:
        opened.lock()
        try:
            relation = opened.sql(query)
            rows = relation.fetchall()
        except duckdb.Error as error:
            raise UsageError.of("cli/sql.failed", reason=error) from error
        table = _table_of(relation)
    is_text = not (args.json or args.csv)
    top = show.DEFAULT_TOP if args.top is None and is_text else args.top
    batches = iter([rows[:top] if top else rows])
    if args.json:
        show.write_json(table, batches, sys.stdout)
    elif args.csv:
        show.write_csv(table, batches, sys.stdout)
    else:
        show.write_text(table, next(batches), paper(args), row_count=len(rows), keep_all=True)
    return 0


def _read_only(query: str) -> str:
    """The text of its only statement, if that only reads."""
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError.of("cli/sql.not-sql", reason=error) from error
    if len(statements) != 1:
        raise UsageError.of("cli/sql.several", count=len(statements))
    kind = str(statements[0].type).rsplit(".", 1)[-1]
    if kind not in ("SELECT", "EXPLAIN"):
        raise UsageError.of("cli/sql.not-a-query", kind=kind.replace("_", " "))
    return str(statements[0].query).strip().rstrip(";")


def _table_of(relation: Any) -> Any:
    """A declaration for a result that nobody declared, from DuckDB's own types."""
    from strobe.model.schema import Column, ColumnType, Table

    def type_of(sql_type: str) -> ColumnType:
        if sql_type in ("FLOAT", "DOUBLE") or sql_type.startswith("DECIMAL"):
            return "f64"
        if sql_type.endswith(("INT", "INTEGER")):
            return "i64"
        return "bool" if sql_type == "BOOLEAN" else "str"

    columns = [
        # NaN is a value of a query, as null is.
        Column(name, type_of(str(sql_type)), f"{sql_type} of the query.")
        for name, sql_type in zip(relation.columns, relation.types, strict=True)
    ]
    return Table("query", "The result of the query.", tuple(columns))
