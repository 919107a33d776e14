"""What two runs reached, for a person: final values, best values, and levels first reached."""

from typing import Any

from rich.cells import cell_len

from strobe import units
from strobe.analyse.comparison.metrics import LEVELS, METRICS
from strobe.analyse.comparison.metrics_verdict import as_dicts
from strobe.analyse.comparison.runs import Comparison
from strobe.messages import localized
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.paper import Paper

# Metrics that are shown, and of how many the levels on the way are.
MOST_TAGS = 12
_MOST_WITH_ALL_LEVELS = 1
_VALUE = 14  # cells of a value, or of what is noted beside it
_PLACE = 22  # cells of a value and a step, or of a step and a time
_NARROWEST_NAME, _WIDEST_NAME = 10, 32

Row = dict[str, Any]
Lines = list[tuple[str, list[str], str]]  # name, cells, style


def metric_rows(comparison: Comparison) -> list[Row]:
    return as_dicts(comparison.metrics, METRICS.column_names)


def final_value(row: Row, run: str) -> str:
    value = row[f"{run}_final"]
    return localized("comparison.not-finite") if value is None else units.quantity(value)


def write_metrics(comparison: Comparison, paper: Paper) -> None:
    rows = metric_rows(comparison)
    if not rows:
        return
    shown = rows[:MOST_TAGS]
    letters = ["A", comparison.letter]
    heads = [*letters, f"{comparison.letter} - A", ""]
    _write_table(localized("comparison.metrics"), heads, _VALUE, _finals(shown), paper)
    if len(rows) > len(shown):
        count = units.count(len(rows) - len(shown))
        paper.write([("  " + localized("comparison.more-metrics", count=count), "dim")])
    _write_not_finite(shown, comparison.letter, paper)
    paper.blank()
    for title, lines in (
        ("comparison.best-values", _bests(shown)),
        ("comparison.levels", _levels(comparison, [row["tag"] for row in shown])),
    ):
        if lines:
            _write_table(localized(title), letters, _PLACE, lines, paper)
            paper.blank()
    paper.write_wrapped(localized("comparison.how-metrics-are-compared"), "dim")
    paper.blank()


def _finals(rows: list[Row]) -> Lines:
    """What noise explains is dim."""
    found: Lines = []
    for row in rows:
        change = row["difference"]
        note = _note(row)
        cells = [final_value(row, "a"), final_value(row, "b"),
                 "" if change is None else _signed(change), note]  # fmt: skip
        found.append((row["tag"], cells, "dim" if note else ""))
    return found


def _signed(change: float) -> str:
    text = units.quantity(change)
    return f"+{text}" if change > 0 and not text.startswith("+") else text


def _note(row: Row) -> str:
    if row["difference"] is None or row["is_different"]:
        return ""
    id = "noise-unknown" if row["is_different"] is None else "within-noise"
    return localized(f"comparison.{id}")


def _bests(rows: list[Row]) -> Lines:
    return [
        (row["tag"], [_at_step(row["a_best"], row["a_best_step"]),
                      _at_step(row["b_best"], row["b_best_step"])], "")
        for row in rows
        if row["better"] is not None
    ]  # fmt: skip


def _at_step(value: float | None, step: int | None) -> str:
    if value is None or step is None:
        return "-"
    number = units.quantity(value)
    return localized("comparison.value-at-step", value=number, step=units.count(step))


def _levels(comparison: Comparison, tags: list[str]) -> Lines:
    """All levels of the first metrics, and the last of the others."""
    found: Lines = []
    rows = as_dicts(comparison.levels, LEVELS.column_names)
    for row in rows:
        place = tags.index(row["tag"]) if row["tag"] in tags else MOST_TAGS
        if place >= MOST_TAGS or (place >= _MOST_WITH_ALL_LEVELS and row["progress"] < 1):
            continue
        name = localized("comparison.level-of-tag", tag=row["tag"],
                         level=units.quantity(row["level"]))  # fmt: skip
        places = [_step_and_time(row["a_step"], row["a_ns"]),
                  _step_and_time(row["b_step"], row["b_ns"])]  # fmt: skip
        found.append((name, places, ""))
    return found


def _step_and_time(step: int | None, ns: int | None) -> str:
    if step is None:
        return localized("comparison.never")
    if ns is None:
        return localized("comparison.step-only", step=units.count(step))
    time = units.duration(ns)
    return localized("comparison.step-and-time", step=units.count(step), time=time)


def _write_not_finite(rows: list[Row], letter: str, paper: Paper) -> None:
    for row in rows:
        for name, run in (("A", "a"), (letter, "b")):
            if row[f"{run}_not_finite"]:
                paper.write_wrapped("  " + localized(
                    "comparison.values-not-finite", letter=name, tag=printable(row["tag"]),
                    count=units.count(row[f"{run}_not_finite"]),
                    all=units.count(row[f"{run}_values"]),
                    step=units.count(row[f"{run}_first_not_finite"]),
                ), "yellow")  # fmt: skip


def _write_table(title: str, heads: list[str], width: int, lines: Lines, paper: Paper) -> None:
    """As many columns as fit beside the names."""
    names = [cell_len(printable(name)) for name, _, _ in lines]
    wanted = max([cell_len(title) - 2, *names])
    room = paper.width - 2 - width * len(heads)
    name_width = max(_NARROWEST_NAME, min(wanted, _WIDEST_NAME, room))
    count = max(1, min(len(heads), (paper.width - 2 - name_width) // width))
    head = [(pad(name, width, right=True), "dim") for name in heads[:count]]
    paper.write([(pad(cut(title, name_width + 2), name_width + 2, right=False), "bold"), *head])
    for name, cells, style in lines:
        shown = cut(printable(name), name_width)
        values = [(pad(cut(cell, width), width, right=True), style) for cell in cells[:count]]
        paper.write([("  " + pad(shown, name_width, right=False), style), *values])
