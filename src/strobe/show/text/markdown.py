"""Any declared table as a Markdown table, for a wiki page or an issue."""

from typing import Any, TextIO

from strobe.model.schema import Table
from strobe.show.text import cells


def write_markdown(
    table: Table, rows: list[tuple[Any, ...]], out: TextIO, hide: frozenset[str] = frozenset()
) -> None:
    """Every column that says something; numbers with their units, to the right."""
    texts = [
        [cells.text(column, value) for column, value in zip(table.columns, row, strict=True)]
        for row in rows
    ]
    shown = [
        i
        for i, column in enumerate(table.columns)
        if column.name not in hide and (not rows or any(row[i] for row in texts))
    ]
    titles = [cells.title(table.columns[i]) for i in shown]
    out.write(_line(titles))
    out.write(_line(["---:" if cells.is_number(table.columns[i]) else "---" for i in shown]))
    for row in texts:
        out.write(_line([_escaped(row[i]) for i in shown]))


def _line(words: list[str]) -> str:
    return f"| {' | '.join(words)} |\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
