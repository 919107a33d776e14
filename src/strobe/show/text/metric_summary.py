"""The metrics of a run in its summary: what each came to, the loss first."""

from typing import Any

from rich.cells import cell_len

from strobe import units
from strobe.messages import localized
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.paper import Paper

_MOST_METRICS = 8
_INDENT, _GAP = "  ", "  "
_WIDEST_NAME = 40


def write_metrics(metrics: dict[str, Any], paper: Paper) -> None:
    rows = metrics["rows"]
    if not rows:
        return
    title = localized("summary.metrics")
    if metrics["ranks"] > 1:
        title += localized("summary.about", what=localized("summary.of-rank", rank=rows[0]["rank"]))
    paper.write([(title, "bold")])
    table = [_heading(), *(_cells(row) for row in rows[:_MOST_METRICS])]
    widths = [max(cell_len(row[place]) for row in table) for place in range(len(table[0]))]
    room = paper.width - len(_INDENT) - sum(widths[1:]) - len(_GAP) * (len(widths) - 1)
    widths[0] = max(8, min(widths[0], room, _WIDEST_NAME))
    for number, row in enumerate(table):
        cells = [pad(cut(row[0], widths[0]), widths[0], right=False)]
        cells += [
            pad(text, width, right=True) for text, width in zip(row[1:], widths[1:], strict=True)
        ]
        paper.write([(_INDENT + _GAP.join(cells), "" if number else "dim")])
    for note in _notes(rows[:_MOST_METRICS]):
        paper.write_wrapped(note, "bold yellow", _INDENT)
    if metrics["tags"] > _MOST_METRICS:
        more = localized("summary.more-metrics", count=units.count(metrics["tags"] - _MOST_METRICS))
        paper.write([(_INDENT + more, "dim")])
    paper.blank()


def _heading() -> list[str]:
    names = ("values", "first", "last", "lowest", "highest")
    return ["", *(localized(f"summary.metric-{name}") for name in names)]


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        printable(row["tag"]), units.count(row["count"]),
        units.quantity(row["first"]), units.quantity(row["last"]),
        _at_step(row["min"], row["min_step"]), _at_step(row["max"], row["max_step"]),
    ]  # fmt: skip


def _at_step(value: float | None, step: int | None) -> str:
    if value is None:
        return ""
    if step is None:
        return units.quantity(value)
    return localized("summary.metric-at-step", value=units.quantity(value), step=units.count(step))


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    """Values that are no numbers are what one must not miss."""
    return [
        localized(
            "summary.metric-not-finite", tag=printable(row["tag"]),
            count=units.count(row["nan_count"] + row["infinite_count"]),
            total=units.count(row["count"]),
        )
        for row in rows
        if row["nan_count"] + row["infinite_count"]
    ]  # fmt: skip
