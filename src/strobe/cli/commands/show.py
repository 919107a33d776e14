"""Print the verdict and the summary of a run, or any of its tables."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from strobe.cli.opening import add_output_arguments, open_run, paper, time, whole_number
from strobe.errors import UsageError
from strobe.messages import localized

if TYPE_CHECKING:
    from strobe.model.schema import Table
    from strobe.reading import OpenedRun

_OF_STEPS_IN_FULL = (
    "operators", "operator-types", "kernels", "communication", "launches", "copies",
    "call-history", "operator-calls",
)  # fmt: skip
_FILTERS = ("name", "type", "scope", "min_ns", "max_ns", "order_by")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_dir", metavar="RUN", help=localized("cli/parser.run"))
    add("table", metavar="TABLE", nargs="?", help=localized("cli/show.table"))
    add("-n", "--top", type=whole_number, metavar="N", help=localized("cli/show.top"))
    add("--order-by", metavar="COLUMN", help=localized("cli/show.order-by"))
    add("--columns", metavar="A,B", help=localized("cli/show.columns"))
    add("--name", metavar="NAME", help=localized("cli/show.name"))
    add("--type", metavar="TYPE", help=localized("cli/show.type"))
    add("--scope", metavar="MODULE", help=localized("cli/show.scope"))
    add("--min-time", dest="min_ns", type=time, metavar="TIME", help=localized("cli/show.min-time"))
    add("--max-time", dest="max_ns", type=time, metavar="TIME", help=localized("cli/show.max-time"))
    add("--all-steps", action="store_true", help=localized("cli/show.all-steps"))
    add("--web", action="store_true", help=localized("cli/show.web"))
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
        raise UsageError.of("cli/show.summary-is-no-table")
    with open_run(args.run_dir) as opened:
        with ProgressLine(localized("cli/parser.advising")):
            advice = advise(opened.run)
        advice.run = args.run_dir
        if not args.json:  # the verdict does not wait for the page below it
            findings.write_brief(advice, paper(args))
            print(flush=True)
        page = summarise(opened.run)
    if args.json:
        answer = advice.to_json()
        answer = {name: answer[name] for name in ("verdict", "findings")}
        print(to_json({"ok": True, "summary": {**page, **answer}}))
    else:
        summary.write(page, paper(args))
    return 0


def _open_pages(args: argparse.Namespace) -> int:
    from strobe.cli.commands.start import print_link
    from strobe.web.one_run import link_to, open_in_browser

    if args.json or args.csv:
        raise UsageError.of("cli/show.web-no-json")
    with open_run(args.run_dir) as opened:  # errors are reported here
        folder = opened.path
    link, instance = link_to(folder)
    print(f"strobe: {localized('cli/show.page-at', run=args.run_dir)}")
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
            tables = ", ".join(_OF_STEPS_IN_FULL)
            raise UsageError.of("cli/show.no-all-steps", table=table.name, tables=tables)
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
    # One more than fits shows that there are more; only then are they counted.
    relation = opened.table(table.name, top=top + 1 if top else None, **options)
    batches = show.rows(opened.run.connection, relation, table)
    rows = [row for batch in batches for row in batch]
    count = len(rows)
    if top and count > top:
        everything = opened.table(table.name, **options)
        ((count,),) = everything.aggregate("count(*)").fetchall()
    is_tree = table.name == "modules" and not args.order_by
    hide = {"depth"} if is_tree else set()  # shown by the indent
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
