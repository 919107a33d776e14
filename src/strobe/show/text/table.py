"""Any declared table as text for a person, CSV or JSON."""

import csv
import json
import math
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, TextIO

import duckdb

from strobe.analyse.select import no_column
from strobe.model.schema import Column, Table
from strobe.show.text import cells
from strobe.show.text.layout import GAP, Shown, by_importance, cut, fit, pad, wrapped
from strobe.show.text.paper import Line, Paper, bar

BATCH_ROWS = 20_000
BAR_WIDTH = 10
# The end of a module's path tells more than its beginning.
_SCOPE_TAIL_RATIO = 0.7

# More rows than this are for a file or a filter, unless somebody asks.
DEFAULT_TOP = 40


def pick(table: Table, names: list[str]) -> Table:
    """The table with only these columns, in this order."""
    by_name = {column.name: column for column in table.columns}
    for name in names:
        if name not in by_name:
            raise no_column(table, name)
    return Table(table.name, table.doc, tuple(by_name[name] for name in names))


def rows(
    connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, table: Table
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a relation in batches, on a cursor of its own, with the table's columns."""
    picked = [relation.columns.index(name) for name in table.column_names]
    is_whole = picked == list(range(len(relation.columns)))
    cursor = connection.cursor()
    try:
        cursor.execute(relation.sql_query())
        while batch := cursor.fetchmany(BATCH_ROWS):
            yield batch if is_whole else [tuple(row[i] for i in picked) for row in batch]
    finally:
        cursor.close()


def write_csv(table: Table, batches: Iterator[list[tuple[Any, ...]]], out: TextIO) -> None:
    """Raw numbers in the units of the column names; null is empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in _with_words(table, batches):
        writer.writerows([[_csv_value(value) for value in row] for row in batch])


def write_json(table: Table, batches: Iterator[list[tuple[Any, ...]]], out: TextIO) -> None:
    """{"ok": true, "table", "columns", "rows"}, written as it is read."""
    columns = [{"name": c.name, "type": c.type, "doc": c.doc} for c in table.columns]
    out.write(f'{{"ok": true, "table": {to_json(table.name)}, "columns": {to_json(columns)}, ')
    out.write('"rows": [')
    separator = "\n"
    for batch in _with_words(table, batches):
        for row in batch:
            out.write(f"{separator}{to_json(list(row))}")
            separator = ",\n"
    out.write("\n]}\n")


def _with_words(
    table: Table, batches: Iterator[list[tuple[Any, ...]]]
) -> Iterator[list[tuple[Any, ...]]]:
    """NaN and infinity as words, in columns in which they are values and nothing is unknown."""
    places = [
        at for at, column in enumerate(table.columns)
        if column.type == "f64" and not column.nullable
    ]  # fmt: skip
    for batch in batches:
        for place in places:
            if not all(math.isfinite(row[place]) for row in batch if row[place] is not None):
                batch = [(*row[:place], _word(row[place]), *row[place + 1 :]) for row in batch]
        yield batch


def _word(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def to_json(value: Any) -> str:
    """JSON proper: what is not a finite number is null, what JSON has no word for is text."""
    return json.dumps(_plain(value), ensure_ascii=False, default=str)


def write_text(
    table: Table,
    rows: list[tuple[Any, ...]],
    paper: Paper,
    *,
    row_count: int | None = None,
    keep_all: bool = False,
    hide: frozenset[str] = frozenset(),
    is_tree: bool = False,
) -> None:
    """Aligned columns that fit the paper; what was left out is said below.

    `keep_all` shows every column, however wide; `hide` names columns that would say nothing.
    """
    if not rows:
        paper.write_wrapped(f"no rows: {table.doc}", "dim")
        return
    texts = [_texts(table, row, is_tree) for row in rows]
    titles = [cells.title(column) for column in table.columns]
    wanted = by_importance(table, texts, hide)
    if keep_all:
        wanted = list(range(len(titles)))
    # A bar is worth more than the least important column.
    share = next((i for i in wanted if cells.is_share(table.columns[i])), None)
    room_for_bar = BAR_WIDTH + len(GAP) if paper.is_terminal and share is not None else 0
    width = sys.maxsize if keep_all and not paper.is_terminal else paper.width - room_for_bar
    shown = fit(table, titles, texts, width, wanted)
    if len(shown) < len(wanted):
        longest_words = [max(title.split("_"), key=len) for title in titles]
        shown = fit(table, longest_words, texts, width, wanted)
    bar_index = share if room_for_bar else None
    _write_head(table, titles, shown, bar_index, paper)
    for row, line in zip(rows, texts, strict=True):
        paper.write(_line(table, row, line, shown, bar_index))
    left_out = [table.column_names[i] for i in sorted(wanted) if i not in {s.index for s in shown}]
    _write_footer(left_out, len(rows), row_count or len(rows), paper)


def _write_head(
    table: Table, titles: list[str], shown: list[Shown], bar_index: int | None, paper: Paper
) -> None:
    columns = [wrapped(titles[s.index], s.width) for s in shown]
    height = max(len(lines) for lines in columns)
    for level in range(height):
        line: Line = []
        for s, lines in zip(shown, columns, strict=True):
            above = height - len(lines)
            word = lines[level - above] if level >= above else ""
            cell = pad(cut(word, s.width), s.width, cells.is_number(table.columns[s.index]))
            line.append((cell + GAP, "bold"))
            if s.index == bar_index:
                line.append((" " * (BAR_WIDTH + len(GAP)), ""))
        paper.write(line)


def _line(
    table: Table, row: tuple[Any, ...], texts: list[str], shown: list[Shown], bar_index: int | None
) -> Line:
    line: Line = []
    for s in shown:
        column = table.columns[s.index]
        tail_ratio = _SCOPE_TAIL_RATIO if column.name.startswith("scope") else 0.5
        cell = cut(texts[s.index], s.width, tail_ratio)
        line.append(
            (pad(cell, s.width, cells.is_number(column)) + GAP, _style(column, row[s.index]))
        )
        if s.index == bar_index:
            line.append((bar(row[s.index] or 0, BAR_WIDTH) + GAP, "cyan"))
    return line


def _texts(table: Table, row: tuple[Any, ...], is_tree: bool) -> list[str]:
    names = table.column_names
    is_counter = table.name in ("counters", "counter-statistics") and "name" in names
    counter = str(row[names.index("name")]) if is_counter else ""
    if table.name == "counters":
        counter = counter.removesuffix("_total")
    texts = [
        cells.text(column, value, counter if column.type == "f64" else "")
        for column, value in zip(table.columns, row, strict=True)
    ]
    if is_tree and "scope" in names and "depth" in names:
        scope = names.index("scope")
        indent = "  " * row[names.index("depth")]
        texts[scope] = indent + texts[scope].rsplit(".", 1)[-1]
    return texts


def _style(column: Column, value: Any) -> str:
    if column.name == "is_outlier" and value:
        return "bold red"
    if column.name in ("name", "scope", "part", "thread", "step"):
        return "bold" if column.name in ("name", "part", "thread") else ""
    return "green" if cells.is_share(column) else ""


def _write_footer(left_out: list[str], shown: int, row_count: int, paper: Paper) -> None:
    if row_count > shown:
        paper.write([(f"{shown:,} of {row_count:,} rows; --top 0 shows all", "dim")])
    if left_out:
        note = f"no room for: {', '.join(left_out)}; see --columns, --width, --csv"
        paper.write_wrapped(note, "dim")


def _csv_value(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal):
        return _plain(float(value))
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
