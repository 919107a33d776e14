"""List the most expensive operator calls of a run, or of a trace from another tool."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from strobe.cli.opening import add_output_arguments, open_run, paper, time, whole_number
from strobe.cli.parser import with_default
from strobe.errors import MissingData, UsageError
from strobe.messages import localized

if TYPE_CHECKING:
    from strobe.analyse.operator_ranking import Choice, Clock
    from strobe.model.schema import Table
    from strobe.show.text.paper import Paper
    from strobe.store.run import Run

_DEFAULT_TOP = 10
_AGGREGATES = ("max", "min", "sum", "mean")
_GROUPS = ("type", "name", "scope", "rank")
_NS_PER_S = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, text = parser.add_argument, _help
    add("run_dir", metavar="RUN", help=localized("cli/parser.run"))
    add("-t", "-n", "--top", type=_any_number, default=_DEFAULT_TOP, metavar="N",
        help=with_default(text("top"), _DEFAULT_TOP))  # fmt: skip
    add("--type", action="append", default=[], metavar="TYPE", help=text("type"))
    add("--name", default="", metavar="NAME", help=text("name"))
    add("--opr-name", default="", metavar="REGEX", help=text("opr-name"))
    add("--scope", default="", metavar="MODULE", help=text("scope"))
    add("--input-dtype", default="", metavar="DTYPE", help=text("input-dtype"))
    add("--rank", type=whole_number, metavar="N", help=text("rank"))
    add("--min-time", dest="min_ns", type=_seconds, metavar="TIME", help=text("min-time"))
    add("--max-time", dest="max_ns", type=_seconds, metavar="TIME", help=text("max-time"))
    add("--aggregate-by", choices=_GROUPS, default="", help=text("aggregate-by"))
    add("--aggregate", choices=_AGGREGATES, default="", help=text("aggregate"))
    add("--order-by", default="time", metavar="COLUMN",
        help=with_default(text("order-by"), "time"))  # fmt: skip
    add("--host", action="store_true", help=text("host"))
    add("--show-host", action="store_true", help=text("show-host"))
    add("--top-end-key", choices=("end", "kern"), default="end",
        help=with_default(text("top-end-key"), "end"))  # fmt: skip
    add("--copy-time", action="store_true", help=text("copy-time"))
    add("--print-only", choices=("summary", "device", "host"), default="", help=text("print-only"))
    add("--dump-only-operators", "--dump-only-opr", action="store_true",
        help=text("dump-only-operators"))  # fmt: skip
    add("--markdown", "--confluence", "--wiki", action="store_true", help=text("markdown"))
    add("--columns", metavar="A,B", help=text("columns"))
    add("--all-steps", action="store_true", help=text("all-steps"))
    add_output_arguments(parser)


def _help(option: str) -> str:
    return localized(f"cli/operators.{option}")


def run(args: argparse.Namespace) -> int:
    from strobe.analyse import operator_ranking as ranking

    choice = _choice(args)
    with open_run(args.run_dir) as opened:
        totals = ranking.totals(opened.run, all_steps=args.all_steps)
        if not totals["operators"]:
            raise MissingData.of("cli/operators.none", where=args.run_dir, run=args.run_dir)
        clocks = _clocks(args, totals)
        if args.copy_time:
            totals |= ranking.copies(opened.run, _on(choice, clocks[0] if clocks else "device"))
        parts = [_ranked(opened.run, _on(choice, clock), args) for clock in clocks]
        if args.type and not any(count for _, _, count in parts):
            _print_similar(ranking.similar_types(opened.run, choice), args)
        page = _Page(args, totals, parts, is_alone=len(opened.manifest.ranks) <= 1)
    page.write()
    return 0


def _print_similar(names: list[str], args: argparse.Namespace) -> None:
    """A type has another name in another framework: ConvolutionForward is mkldnn_convolution."""
    if names:
        wanted = ", ".join(args.type)
        text = localized("cli/operators.similar", types=wanted, names=", ".join(names))
        print(f"strobe: {text}", file=sys.stderr)


def _choice(args: argparse.Namespace) -> "Choice":
    from strobe.analyse.operator_ranking import Choice

    return Choice(
        wait_only=args.top_end_key == "kern", types=tuple(args.type), pattern=args.opr_name,
        like=args.name, scope=args.scope, input_dtype=args.input_dtype, rank=args.rank,
        min_ns=args.min_ns, max_ns=args.max_ns, aggregate=args.aggregate,
        aggregate_by=args.aggregate_by, order_by=args.order_by, top=args.top,
        all_steps=args.all_steps,
    )  # fmt: skip


def _on(choice: "Choice", clock: "Clock") -> "Choice":
    from dataclasses import replace

    return replace(choice, clock=clock)


def _clocks(args: argparse.Namespace, totals: dict[str, Any]) -> list["Clock"]:
    """Which times are shown; a run without a device has those of the host."""
    if args.print_only == "summary":
        return []
    if args.print_only == "device":
        return ["device"]
    if args.host or args.print_only == "host":
        return ["host"]
    if args.show_host:
        return ["device", "host"] if totals["device_ns"] else ["host"]
    return ["device"] if totals["device_ns"] or not totals["host_ns"] else ["host"]


def _ranked(
    run: "Run", choice: "Choice", args: argparse.Namespace
) -> tuple["Table", list[tuple[Any, ...]], int]:
    from strobe.analyse.operator_ranking import ranked
    from strobe.show.text import table as show

    table, rows, count = ranked(run, choice)
    wanted = [name.strip() for name in args.columns.split(",")] if args.columns else []
    if args.dump_only_operators:
        known = table.column_names
        wanted = ["name", "type", "id"] if "id" in known else list(known[:2])
    if not wanted:
        return table, rows, count
    picked = show.pick(table, wanted)
    places = [table.column_names.index(name) for name in wanted]
    return picked, [tuple(row[place] for place in places) for row in rows], count


class _Page:
    """Everything that was requested, to be printed."""

    def __init__(
        self, args: argparse.Namespace, totals: dict[str, Any],
        parts: list[tuple["Table", list[tuple[Any, ...]], int]], *, is_alone: bool,
    ) -> None:  # fmt: skip
        self._args, self._totals, self._parts, self._is_alone = args, totals, parts, is_alone

    def write(self) -> None:
        if self._args.json:
            self._write_json()
        elif self._args.csv:
            self._write_csv()
        elif self._args.dump_only_operators:
            self._write_plain()
        else:
            self._write_text()

    def _write_json(self) -> None:
        from strobe.show.text.table import to_json

        found: dict[str, Any] = {"ok": True, "totals": self._totals}
        if self._parts:
            table = self._parts[0][0]
            columns = [{"name": c.name, "type": c.type, "doc": c.doc} for c in table.columns]
            rows = [list(row) for _, part, _ in self._parts for row in part]
            found |= {"table": table.name, "columns": columns, "rows": rows}
        print(to_json(found))

    def _write_csv(self) -> None:
        from strobe.show.text.table import write_csv

        if not self._parts:
            raise UsageError.of("cli/operators.summary-no-csv")
        write_csv(self._parts[0][0], iter([rows for _, rows, _ in self._parts]), sys.stdout)

    def _write_plain(self) -> None:
        from strobe.show.text.cells import printable

        if not self._args.print_only:
            self._write_totals(paper(self._args))
        for _, rows, _ in self._parts:
            for row in rows:
                print(*(printable(str("" if value is None else value)) for value in row))

    def _write_text(self) -> None:
        page = paper(self._args)
        if self._args.print_only in ("", "summary"):
            self._write_totals(page)
        for clock, (table, rows, count) in zip(("device", "host"), self._parts, strict=False):
            if len(self._parts) > 1:
                page.write([(localized(f"cli/operators.times-{clock}"), "bold")])
            self._write_table(table, rows, count, page)
            if len(self._parts) > 1:
                page.blank()

    def _write_table(
        self, table: "Table", rows: list[tuple[Any, ...]], count: int, page: "Paper"
    ) -> None:
        from strobe.show.text import markdown
        from strobe.show.text import table as show

        hide = {"clock", "rank"} if self._is_alone else {"clock"}
        if self._args.markdown:
            markdown.write_markdown(table, rows, sys.stdout, frozenset(hide))
            return
        show.write_text(
            table, rows, page, row_count=count, keep_all=bool(self._args.columns),
            hide=frozenset(hide),
        )  # fmt: skip

    def _write_totals(self, page: "Paper") -> None:
        from strobe import units
        from strobe.show.text.layout import pad

        def total(name: str) -> str:
            value = self._totals[name]
            return _help("not-recorded") if value is None else units.duration(value)

        lines = [(_help(f"total-{clock}"), total(f"{clock}_ns")) for clock in ("device", "host")]
        if "copies" in self._totals:
            for name in ("copy", "copy_wait"):
                text, mean = total(f"{name}_ns"), self._totals[f"{name}_mean_ns"]
                if self._totals["copies"] and mean is not None:
                    mean_text = units.duration(mean)
                    text = localized("cli/operators.with-mean", total=text, mean=mean_text)
                lines.append((_help(name), text))
        for title, text in lines:
            page.write([(f"{pad(title, 18, right=False)} ", "dim"), (text, "")])
        page.blank()


def _any_number(text: str) -> int:
    if not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(localized("cli/parser.not-a-number", text=repr(text)))
    return int(text)


def _seconds(text: str) -> int:
    """A duration; without a unit it is in seconds, as in MegEngine: 1e-4."""
    from decimal import Decimal, InvalidOperation

    try:
        seconds = Decimal(text)
    except InvalidOperation:
        return time(text)
    if not seconds.is_finite() or abs(seconds) > _NS_PER_S:
        raise argparse.ArgumentTypeError(localized("cli/operators.not-a-duration", text=repr(text)))
    return int(seconds * _NS_PER_S)
