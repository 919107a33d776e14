"""More than two runs side by side: the same training in several frameworks, or on several machines.

comparison.py explains the difference of two runs; here each run has a column.
"""

from collections.abc import Callable
from typing import Any

from rich.cells import cell_len

from strobe import units
from strobe.analyse.comparison.runs import Comparison
from strobe.messages import localized
from strobe.show.text.cells import printable
from strobe.show.text.comparison import (
    amount,
    amount_title,
    change,
    part_title,
    verdict_sentence,
    write_run,
)
from strobe.show.text.layout import cut, pad
from strobe.show.text.metrics_comparison import MOST_TAGS, final_value, metric_rows
from strobe.show.text.paper import Paper

_NUMBER = 11  # cells of a run's column
_NARROWEST_NAME = 10
_MOST_SETTINGS = 20

Cells = list[tuple[str, str]]


def write_all(comparisons: list[Comparison], paper: Paper) -> None:
    """Each compares another run with the same first one."""
    _write_runs(comparisons, paper)
    if all(comparison.has_steps for comparison in comparisons):
        _write_steps(comparisons, paper)
    for comparison in comparisons:
        paper.write_wrapped(verdict_sentence(comparison))
    paper.blank()
    _write_metrics(comparisons, paper)
    _write_amounts(comparisons, paper)
    _write_settings(comparisons, paper)
    paper.write_wrapped(localized("comparison.how-to-explain"), "dim")


def _letters(comparisons: list[Comparison]) -> list[str]:
    return ["A", *(comparison.letter for comparison in comparisons)]


def _write_runs(comparisons: list[Comparison], paper: Paper) -> None:
    first = comparisons[0]
    runs = [(first.a, first.steps_a, first.mean_a_ns)]
    runs += [(each.b, each.steps_b, each.mean_b_ns) for each in comparisons]
    for letter, (path, steps, mean_ns) in zip(_letters(comparisons), runs, strict=True):
        write_run(letter, path, steps, mean_ns, paper)
    paper.blank()


def _write_steps(comparisons: list[Comparison], paper: Paper) -> None:
    parts = {row[0]: [row[1]] for row in comparisons[0].steps}
    for comparison in comparisons:
        for row in comparison.steps:
            parts[row[0]].append(row[2])
    rows = []
    for part, values in parts.items():
        if any(values):
            rows.append((part_title(part), [units.duration(value) for value in values]))
        if part == "step" and values[0]:
            changes = [change(value / values[0]) for value in values[1:]]
            rows.append((localized("comparison.against-first"), ["", *changes]))
    _write_table(localized("comparison.typical-step"), rows, comparisons, paper)


def _write_metrics(comparisons: list[Comparison], paper: Paper) -> None:
    found: dict[str, list[str]] = {}
    for place, comparison in enumerate(comparisons, 1):
        for row in metric_rows(comparison):
            values = found.setdefault(row["tag"], ["-"] * (len(comparisons) + 1))
            values[0], values[place] = final_value(row, "a"), final_value(row, "b")
    rows = [(printable(tag), values) for tag, values in list(found.items())[:MOST_TAGS]]
    _write_table(localized("comparison.metrics"), rows, comparisons, paper)


def _write_amounts(comparisons: list[Comparison], paper: Paper) -> None:
    rows = [
        (amount_title(name), [amount(name, value) for value in values])
        for name, values in _by_name(comparisons, "amounts").items()
    ]
    _write_table(localized("comparison.amounts"), rows, comparisons, paper)


def _by_name(comparisons: list[Comparison], table: str) -> dict[str, list[Any]]:
    """Rows of a name and two values, as a name and the value of each run; None is unknown."""
    found: dict[str, list[Any]] = {}
    for place, comparison in enumerate(comparisons, 1):
        for name, of_first, of_other in getattr(comparison, table):
            values = found.setdefault(name, [None] * (len(comparisons) + 1))
            values[0] = of_first if values[0] is None else values[0]
            values[place] = of_other
    return found


def _write_table(
    title: str, rows: list[tuple[str, list[str]]], comparisons: list[Comparison], paper: Paper
) -> None:
    if not rows:
        return
    letters = _letters(comparisons)
    widest = max(cell_len(title) - 2, *(cell_len(name) for name, _ in rows))
    room = paper.width - 2 - _NUMBER * len(letters)
    name_width = max(_NARROWEST_NAME, min(widest, room))
    shown = max(1, min(len(letters), (paper.width - 2 - name_width) // _NUMBER))
    line = _line_of(name_width, shown)
    paper.write(line(title, letters, "bold", "dim"))
    for name, values in rows:
        style = "bold" if name == part_title("step") else ""
        paper.write(line(f"  {name}", values, style, style))
    if shown < len(letters):
        left_out = ", ".join(letters[shown:])
        paper.write_wrapped(localized("comparison.no-room", runs=left_out), "dim")
    paper.blank()


def _line_of(name_width: int, shown: int) -> Callable[[str, list[str], str, str], Cells]:
    def line(name: str, values: list[str], name_style: str, style: str) -> Cells:
        title = pad(cut(name, name_width + 2), name_width + 2, right=False)
        cells = [(pad(value, _NUMBER, right=True), style) for value in values[:shown]]
        return [(title, name_style), *cells]

    return line


def _write_settings(comparisons: list[Comparison], paper: Paper) -> None:
    """A run without a value of its own has the value of the first."""
    found: dict[str, list[str]] = {}
    for comparison in comparisons:
        for name, of_first, of_other in comparison.settings:
            lines = found.setdefault(name, [f"A {of_first or '-'}"])
            lines.append(f"{comparison.letter} {of_other or '-'}")
    if not found:
        return
    paper.write([(localized("comparison.settings"), "bold")])
    for name, lines in list(found.items())[:_MOST_SETTINGS]:
        setting = localized("comparison.setting-of-runs", name=name, values=", ".join(lines))
        line = "  " + printable(setting)
        if cell_len(line) <= paper.width:
            paper.write([(line, "")])
            continue
        paper.write([("  " + cut(printable(name), paper.width - 2), "")])
        for text in lines:
            paper.write([("    ", ""), (cut(printable(text), paper.width - 4), "dim")])
    if len(found) > _MOST_SETTINGS:
        count = units.count(len(found) - _MOST_SETTINGS)
        paper.write([("  " + localized("comparison.more-settings-of-runs", count=count), "dim")])
    paper.blank()
