"""List the runs below a directory, with their states and what their metrics reached."""

import argparse
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from strobe.cli.opening import add_output_arguments, paper, whole_number
from strobe.errors import UsageError
from strobe.messages import localized

if TYPE_CHECKING:
    from strobe.analyse.metrics.catalogue import Catalogue
    from strobe.model.table import Table

_LISTED_TAGS = 12
_FIGURES = ("last", "last_step", "min", "min_step", "max", "max_step", "nan_count")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, text = parser.add_argument, _help
    add("directory", metavar="DIR", nargs="?", default=".", help=text("directory"))
    add("--tags", metavar="A,B", help=text("tags"))
    add("-n", "--top", type=whole_number, metavar="N", help=text("top"))
    add("--order-by", metavar="COLUMN", help=text("order-by"))
    add("--columns", metavar="A,B", help=text("columns"))
    add_output_arguments(parser)


def _help(option: str) -> str:
    return localized(f"cli/list.{option}")


def run(args: argparse.Namespace) -> int:
    from strobe.show.text import table as show
    from strobe.web.catalogue import open_catalogue

    catalogue = open_catalogue(args.directory).catalogue
    tags = [tag.strip() for tag in (args.tags or "").split(",") if tag.strip()]
    _refuse_unknown(tags, catalogue)
    is_text = not (args.json or args.csv)
    table, rows = _listed(catalogue, tags)
    shown = table
    if args.columns:
        shown = show.pick(table, [name.strip() for name in args.columns.split(",")])
    rows = _ordered(table, rows, args.order_by)
    count = len(rows)
    top = show.DEFAULT_TOP if args.top is None and is_text else args.top
    values = [tuple(row[name] for name in shown.column_names) for row in rows[: top or None]]
    if args.json:
        show.write_json(shown, iter([values]), sys.stdout)
    elif args.csv:
        show.write_csv(shown, iter([values]), sys.stdout)
    else:
        texts = _as_texts(shown, values, tags)
        hide = frozenset() if args.columns else _without_information(table, rows)
        show.write_text(
            *texts, paper(args), row_count=count, keep_all=bool(args.columns), hide=hide
        )
        if not tags:
            _print_tags(catalogue)
    return 0


def _listed(catalogue: "Catalogue", tags: list[str]) -> "tuple[Table, list[dict[str, Any]]]":
    """A row for each run, with the figures of the tags as further columns."""
    from strobe.analyse.metrics.catalogue import RUN_SCALARS, RUNS
    from strobe.model.table import Column, Table

    docs = {column.name: column for column in RUN_SCALARS.columns}
    names = {(tag, name): _column_name(tag, name) for tag in tags for name in _FIGURES}
    columns = [column for column in RUNS.columns if column.name != "verdict"]
    columns += [
        Column(name, docs[figure].type, f"Of {tag}: {docs[figure].doc}", nullable=True)
        for (tag, figure), name in names.items()
    ]
    rows = {row["run"]: {c.name: row.get(c.name) for c in columns} for row in catalogue.runs()}
    for found in _scalars(catalogue, tags):
        row = rows[found["run"]]
        if row[names[found["tag"], "nan_count"]] is None:  # not of a lower rank
            row.update({names[found["tag"], figure]: found[figure] for figure in _FIGURES})
    return Table(RUNS.name, RUNS.doc, tuple(columns)), list(rows.values())


def _column_name(tag: str, figure: str) -> str:
    return tag if figure == "last" else f"{tag}_{figure.removeprefix('last_')}"


def _scalars(catalogue: "Catalogue", tags: list[str]) -> list[dict[str, Any]]:
    names = ("run", "tag", *_FIGURES)
    with catalogue.connection(tags) as connection:
        rows = connection.execute(
            f"SELECT {', '.join(names)} FROM run_scalars ORDER BY rank, source"
        )
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def _ordered(
    table: "Table", rows: list[dict[str, Any]], order_by: str | None
) -> list[dict[str, Any]]:
    """Numbers from the largest, text from A; what is unknown or NaN comes last."""
    from strobe.analyse.select import no_column

    for word in reversed((order_by or "").split(",")):
        name = word.strip().lstrip("+-")
        if not name:
            continue
        column = next((column for column in table.columns if column.name == name), None)
        if column is None:
            raise no_column(table, name)
        descends = column.type != "str" if word.strip()[0] not in "+-" else word.strip()[0] == "-"
        known = [row for row in rows if row[name] is not None and row[name] == row[name]]
        known.sort(key=lambda row, name=name: row[name], reverse=descends)  # type: ignore[misc]
        rows = known + [row for row in rows if row[name] is None or row[name] != row[name]]
    return rows


def _refuse_unknown(tags: list[str], catalogue: "Catalogue") -> None:
    known = catalogue.tags()
    unknown = [tag for tag in tags if tag not in known]
    if unknown:
        names = ", ".join(list(known)[:_LISTED_TAGS]) or localized("cli/list.none")
        raise UsageError.of("cli/list.unknown-tag", tag=repr(unknown[0]), names=names)


def _without_information(table: "Table", rows: list[dict[str, Any]]) -> frozenset[str]:
    """Columns that a person does not need: steps, problems and NaN that no run has."""
    return frozenset(
        column.name
        for column in table.columns
        if column.name.endswith("_step")
        or ((column.name == "problem" or column.name.endswith("nan_count"))
            and not any(row[column.name] for row in rows))
    )  # fmt: skip


def _as_texts(
    table: "Table", rows: list[tuple[Any, ...]], tags: list[str]
) -> "tuple[Table, list[tuple[Any, ...]]]":
    """Values of scalars with their own digits, and moments of the local clock."""
    from strobe import units
    from strobe.model.table import Column, Table

    figures = {_column_name(tag, name) for tag in tags for name in ("last", "min", "max")}
    columns, texts = [], []
    for at, column in enumerate(table.columns):
        values = [row[at] for row in rows]
        if column.name == "started_unix_ns":
            column = Column("started", "str", column.doc, nullable=True)
            values = [_moment(value) for value in values]
        elif column.name in figures:
            values = [value if value is None else units.quantity(value) for value in values]
        columns.append(column)
        texts.append(values)
    return Table(table.name, table.doc, tuple(columns)), list(zip(*texts, strict=True))


def _moment(unix_ns: int | None) -> str:
    return f"{datetime.fromtimestamp(unix_ns / 1e9):%Y-%m-%d %H:%M}" if unix_ns else ""


def _print_tags(catalogue: "Catalogue") -> None:
    counts = list(catalogue.tags().items())
    if counts:
        listed = ", ".join(f"{tag} ({count})" for tag, count in counts[:_LISTED_TAGS])
        more = ", ..." if len(counts) > _LISTED_TAGS else ""
        print(localized("cli/list.known-tags", tags=f"{listed}{more}"))
