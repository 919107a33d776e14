"""The calls of operators that took longest, of a run or of a trace written elsewhere.

  strobe operators RUN -t 5                      the five longest calls
  strobe operators trace.json.gz --aggregate-by type
  strobe operators RUN --type ConvolutionForward --min-time 100us --order-by memory

What megengine.tools.profile_analyze does, with its options. Times are those of the device where
the run has any, else those of the host.
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from strobe.cli.opening import add_output_arguments, open_run, paper, time, whole_number
from strobe.errors import MissingData, UsageError

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
    add = parser.add_argument
    add("run_dir", metavar="RUN_OR_FILE", help="folder of a run, or a trace of any format")
    add("-t", "-n", "--top", type=_any_number, default=_DEFAULT_TOP, metavar="N",
        help="first N rows, 10 unless told; 0: all; -N: all but the last N")  # fmt: skip
    add("--type", action="append", default=[], metavar="TYPE",
        help="operators of this type; may be given several times")  # fmt: skip
    add("--name", default="", help="operators with a name like this; need not be exact")
    add("--opr-name", default="", metavar="REGEX", help="operators whose name begins so")
    add("--scope", default="", help="operators of this module and all below it")
    add("--input-dtype", default="", metavar="DTYPE", help="operators with an input of this type")
    add("--rank", type=whole_number, metavar="N", help="of this rank alone")
    add("--min-time", dest="min_ns", type=_seconds, metavar="TIME",
        help="calls of at least this: 10us, 1ms; a bare number is seconds")  # fmt: skip
    add("--max-time", dest="max_ns", type=_seconds, metavar="TIME", help="calls of at most this")
    add("--aggregate-by", choices=_GROUPS, default="", help="one row for each of these")
    add("--aggregate", choices=_AGGREGATES, default="",
        help="how rows are put together: sum unless told; alone: all in one row")  # fmt: skip
    add("--order-by", default="time", metavar="COLUMN",
        help="biggest first, +COLUMN smallest first: time, computation, flops (a second), memory, "
        "bandwidth, id, name")  # fmt: skip
    add("--host", action="store_true", help="times of the host, not of the device")
    add("--show-host", action="store_true", help="both, one after the other")
    add("--top-end-key", choices=("end", "kern"), default="end",
        help="kern: only the time until the first kernel could start")  # fmt: skip
    add("--copy-time", action="store_true", help="also the time of operators of type Copy")
    add("--print-only", choices=("summary", "device", "host"), default="", help="only this part")
    add("--dump-only-operators", "--dump-only-opr", action="store_true",
        help="name, type and number of each, for diff")  # fmt: skip
    add("--markdown", "--confluence", "--wiki", action="store_true", help="as a Markdown table")
    add("--columns", metavar="A,B", help="these columns, in this order")
    add("--all-steps", action="store_true", help="also of steps that were recorded in part")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from strobe.analyse import operator_ranking as ranking

    choice = _choice(args)
    with open_run(args.run_dir) as opened:
        totals = ranking.totals(opened.run, all_steps=args.all_steps)
        if not totals["operators"]:
            raise MissingData(
                "no operator was recorded in it", where=args.run_dir,
                hint=f"what else there is: strobe show {args.run_dir}",
            )  # fmt: skip
        clocks = _clocks(args, totals)
        if args.copy_time:
            totals |= ranking.copies(opened.run, _on(choice, clocks[0] if clocks else "device"))
        parts = [_ranked(opened.run, _on(choice, clock), args) for clock in clocks]
        if args.type and not any(count for _, _, count in parts):
            _say_similar(ranking.similar_types(opened.run, choice), args)
        page = _Page(args, totals, parts, is_alone=len(opened.manifest.ranks) <= 1)
    page.write()
    return 0


def _say_similar(names: list[str], args: argparse.Namespace) -> None:
    """A type has another name in another framework: ConvolutionForward is mkldnn_convolution."""
    if names:
        wanted = ", ".join(args.type)
        print(f"strobe: no operators of type {wanted}. Similar: {', '.join(names)}",
              file=sys.stderr)  # fmt: skip


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
    """All that was asked for, on its way out."""

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
            raise UsageError(
                "the summary is no table", hint="--print-only summary goes with --json"
            )
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
                page.write([(f"time of the {clock}", "bold")])
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

        def told(name: str) -> str:
            value = self._totals[name]
            return "not recorded" if value is None else units.duration(value)

        lines = [(f"total {clock} time", told(f"{clock}_ns")) for clock in ("device", "host")]
        if "copies" in self._totals:
            each = ", {} each" if self._totals["copies"] else "{}"
            for name in ("copy", "copy_wait"):
                mean = self._totals[f"{name}_mean_ns"]
                more = each.format(units.duration(mean) if mean is not None else "")
                lines.append((f"{name.replace('_', ' ')} time", told(f"{name}_ns") + more))
        for title, text in lines:
            page.write([(f"{title:<18} ", "dim"), (text, "")])
        page.blank()


def _any_number(text: str) -> int:
    if not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _seconds(text: str) -> int:
    """A length of time; as MegEngine means it where it has no unit: 1e-4."""
    from decimal import Decimal, InvalidOperation

    try:
        seconds = Decimal(text)
    except InvalidOperation:
        return time(text)
    if not seconds.is_finite() or abs(seconds) > _NS_PER_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time")
    return int(seconds * _NS_PER_S)
