"""Show the verdict and the one-page summary of a run, or any of its tables.

strobe show RUN                          the verdict and the summary
strobe show RUN operators --name conv    a table, filtered
strobe show RUN steps --order-by dur_ns --top 5
strobe show RUN --web                    its web pages
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from strobe.cli.opening import add_output_arguments, open_run, paper, time, whole_number
from strobe.errors import UsageError

if TYPE_CHECKING:
    from strobe.model.schema import Table
    from strobe.reading import OpenedRun

_OF_STEPS_IN_FULL = (
    "operators", "operator-types", "kernels", "communication", "launches", "copies",
    "call-history", "operator-calls",
)  # fmt: skip
_FILTERS = ("name", "type", "scope", "min_ns", "max_ns", "order_by")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="folder of a recorded run")
    parser.add_argument(
        "table", metavar="TABLE", nargs="?", help="which table; `tables` lists them"
    )
    parser.add_argument("-n", "--top", type=whole_number, metavar="N", help="first N rows; 0: all")
    parser.add_argument("--order-by", metavar="COLUMN", help="biggest first; +COLUMN: smallest")
    parser.add_argument("--columns", metavar="A,B", help="these columns, in this order")
    parser.add_argument("--name", help="rows whose name is like this; need not be exact")
    parser.add_argument("--type", help="operators of this type: mm")
    parser.add_argument("--scope", help="this module and all below it")
    parser.add_argument(
        "--min-time", dest="min_ns", type=time, metavar="TIME", help="at least this long: 10us, 1ms"
    )
    parser.add_argument(
        "--max-time", dest="max_ns", type=time, metavar="TIME", help="at most this long"
    )
    parser.add_argument(
        "--all-steps",
        action="store_true",
        help="operators, kernels, ...: also those of steps that were recorded in part",
    )
    parser.add_argument("--web", action="store_true", help="open its web pages in a browser")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.web:
        return _open_pages(args)
    if args.table in (None, "summary"):
        return _show_summary(args)
    if args.table == "tables":
        return _list_tables(args)
    return _show_table(args)


def _show_summary(args: argparse.Namespace) -> int:
    from strobe.advise import advise
    from strobe.analyse.summary import summarise
    from strobe.cli.progress_line import ProgressLine
    from strobe.show.text import findings, summary
    from strobe.show.text.table import to_json

    given = [name for name in (*_FILTERS, "top", "columns") if getattr(args, name) is not None]
    if args.csv or given or args.all_steps:
        raise UsageError(
            "the summary is not one table, so it has no CSV, columns, filter or order",
            hint="name a table, e.g. strobe show RUN steps; strobe show RUN tables lists them",
        )
    with open_run(args.run_dir) as opened:
        with ProgressLine("looking for what makes it slow"):
            advice = advise(opened.run)
        advice.run = args.run_dir
        if not args.json:  # the verdict does not wait for the page below it
            findings.write_brief(advice, paper(args))
            print(flush=True)
        page = summarise(opened.run)
    if args.json:
        told = advice.to_json()
        told = {name: told[name] for name in ("verdict", "findings")}
        print(to_json({"ok": True, "summary": {**page, **told}}))
    else:
        summary.write(page, paper(args))
    return 0


def _open_pages(args: argparse.Namespace) -> int:
    from strobe.cli.commands.start import print_link
    from strobe.web.one_run import link_to, open_in_browser

    if args.json or args.csv:
        raise UsageError("web pages are no JSON or CSV", hint="leave out --web, or the other")
    with open_run(args.run_dir) as opened:  # what is wrong with it is told here and now
        folder = opened.path
    link, instance = link_to(folder)
    print(f"strobe: {args.run_dir} is at")
    print_link(link, instance.host, instance.port)
    open_in_browser(link)
    return 0


def _list_tables(args: argparse.Namespace) -> int:
    from strobe.analyse.lookup import declaration, table_names
    from strobe.model.schema import Column, Table
    from strobe.show.text import table

    listing = Table(
        "tables",
        "What can be shown.",
        (Column("name", "str", "Name of the table."), Column("what", "str", "What it says.")),
    )
    rows = [(name, declaration(name).doc) for name in table_names()]
    if args.json:
        table.write_json(listing, iter([rows]), sys.stdout)
    elif args.csv:
        table.write_csv(listing, iter([rows]), sys.stdout)
    else:
        for name, what in rows:
            print(f"{name:<24} {what}")
    return 0


def _show_table(args: argparse.Namespace) -> int:
    from strobe.analyse.lookup import declaration
    from strobe.show.text import table as show

    table = declaration(args.table)
    options: dict[str, Any] = {name: getattr(args, name) for name in _FILTERS}
    options = {name: value for name, value in options.items() if value is not None}
    if args.all_steps:
        if table.name not in _OF_STEPS_IN_FULL:
            raise UsageError(
                f"--all-steps says nothing about {table.name}",
                hint=f"it is for the tables {', '.join(_OF_STEPS_IN_FULL)}",
            )
        options["all_steps"] = True
    if args.columns:
        table = show.pick(table, [name.strip() for name in args.columns.split(",")])
    with open_run(args.run_dir) as opened:
        if args.json or args.csv:
            relation = opened.table(table.name, top=args.top, **options)
            batches = show.rows(opened.run.connection, relation, table)
            write = show.write_json if args.json else show.write_csv
            write(table, batches, sys.stdout)
        else:
            _print_table(opened, table, options, args)
    return 0


def _print_table(
    opened: "OpenedRun", table: "Table", options: dict[str, Any], args: argparse.Namespace
) -> None:
    from strobe.show.text import table as show

    top = show.DEFAULT_TOP if args.top is None else args.top
    # One more than fits tells that there are more; only then they are counted.
    relation = opened.table(table.name, top=top + 1 if top else None, **options)
    batches = show.rows(opened.run.connection, relation, table)
    rows = [row for batch in batches for row in batch]
    count = len(rows)
    if top and count > top:
        everything = opened.table(table.name, **options)
        ((count,),) = everything.aggregate("count(*)").fetchall()
    is_tree = table.name == "modules" and not args.order_by
    hide = {"depth"} if is_tree else set()  # its indent tells
    if len(opened.manifest.ranks) <= 1:
        hide.add("rank")
    show.write_text(
        table,
        rows[:top] if top else rows,
        paper(args),
        row_count=count,
        keep_all=bool(args.columns),
        hide=frozenset(hide),
        is_tree=is_tree,
    )
