"""Ask a run any question, over the same tables that `strobe show` prints.

  strobe sql RUN "select name, sum(self_ns) from operators group by all order by 2 desc"

Analyses are tables too, with underscores: steps, operators, operator_types, modules, gaps, ...
Only questions: nothing is written, and no file but the run's own is read.
"""

import argparse
import sys
from typing import Any

from strobe.cli.opening import add_output_arguments, open_run, paper, whole_number
from strobe.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="folder of a recorded run")
    parser.add_argument("query", metavar="QUERY", help="SQL as DuckDB speaks it; - reads stdin")
    parser.add_argument("-n", "--top", type=whole_number, metavar="N", help="first N rows; 0: all")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import duckdb

    from strobe.show.text import table as show

    query = sys.stdin.read() if args.query == "-" else args.query
    query = _only_question(query)
    with open_run(args.run_dir) as opened:
        opened.lock()
        try:
            relation = opened.sql(query)
            rows = relation.fetchall()
        except duckdb.Error as error:
            raise UsageError(
                f"the query failed: {error}",
                hint="strobe show RUN tables lists the tables; their columns: "
                'strobe sql RUN "describe steps"',
            ) from error
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


def _only_question(query: str) -> str:
    """The text of its only statement, if that only reads."""
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"this is not SQL: {error}", hint="quote the whole query") from error
    if len(statements) != 1:
        raise UsageError(
            f"one query at a time, not {len(statements)}",
            hint='for example: strobe sql RUN "select count(*) from events"',
        )
    kind = str(statements[0].type).rsplit(".", 1)[-1]
    if kind not in ("SELECT", "EXPLAIN"):
        raise UsageError(
            f"{kind.replace('_', ' ')} is not a question",
            hint="only SELECT, WITH, FROM, DESCRIBE, SUMMARIZE and EXPLAIN: "
            "a run is never changed; --csv writes a result",
        )
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
        Column(name, type_of(str(sql_type)), f"{sql_type} of the query.", nullable=True)
        for name, sql_type in zip(relation.columns, relation.types, strict=True)
    ]
    return Table("query", "The result of the query.", tuple(columns))
