"""Two runs side by side for a person, for 80 columns and more."""

from typing import Any

from strobe import units
from strobe.analyse.comparison.runs import Comparison
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.paper import Line, Paper

WIDEST = 120
_NUMBER = 11  # columns of a time or a difference
_SHARE = 8
_BAR = 12
# On narrower paper the names need the room of the bars.
_WITH_BARS = 64
# Rows of an explanation that are told one by one; the others are summed.
_MOST_ROWS = 10
_MOST_SETTINGS = 20

PART_TITLES = {
    "step": "step",
    "data": "waiting for data",
    "gap": "rest of the gap",
    "forward": "forward",
    "backward": "backward",
    "all_reduce": "communication",
    "update": "update",
    "rest": "rest",
}


def write(comparison: Comparison, paper: Paper, outcome: str = "") -> None:
    """`outcome` says what came of the advice for the first run."""
    paper.width = min(paper.width, WIDEST)
    _write_headline(comparison, paper)
    if outcome:
        paper.write_wrapped(outcome, "")
        paper.blank()
    _write_steps(comparison, paper)
    _write_explanation(comparison, paper)
    _write_devices(comparison, paper)
    _write_amounts(comparison, paper)
    _write_settings(comparison, paper)


def _write_headline(comparison: Comparison, paper: Paper) -> None:
    write_run("A", comparison.a, comparison.steps_a, comparison.mean_a_ns, paper)
    write_run("B", comparison.b, comparison.steps_b, comparison.mean_b_ns, paper)
    paper.blank()
    verdict = comparison.verdict
    paper.write_wrapped(verdict[0].upper() + verdict[1:], f"bold {_colour(comparison)}".strip())
    paper.blank()


def write_run(letter: str, path: str, steps: int, mean_ns: int, paper: Paper) -> None:
    told = f"{steps:,} steps, {units.duration(mean_ns)} on average"
    room = paper.width - len(told) - 5
    paper.write([
        (f"{letter}  ", "bold"), (pad(cut(printable(path), room), room, right=False), ""),
        (f"  {told}", "dim"),
    ])  # fmt: skip


def _colour(comparison: Comparison) -> str:
    if not comparison.is_different:
        return ""
    return "red" if comparison.step_ratio.ratio > 1 else "green"


def _write_steps(comparison: Comparison, paper: Paper) -> None:
    rows = [row for row in comparison.steps if row[1] or row[2]]
    largest = max((abs(row[3]) for row in rows[1:]), default=0)
    name_width = max(len(title) for title in PART_TITLES.values())
    _write_heading("Typical step", name_width, ("A", "B", "B - A"), paper)
    for part, ns_a, ns_b, difference, ratio in rows:
        change = "" if ratio is None else f"{(ratio - 1) * 100:+.0f}%"
        style = "bold" if part == "step" else ""
        bar = "" if part == "step" else _bar(difference, largest, paper)
        _write_row([
            ("  " + pad(PART_TITLES[part], name_width, right=False), style),
            (_time(ns_a), style), (_time(ns_b), style), (_signed(difference), style),
            (pad(change, _SHARE, right=True), style), ("  " + bar, _direction(difference)),
        ], paper)  # fmt: skip
    paper.blank()


def _write_explanation(comparison: Comparison, paper: Paper) -> None:
    if not comparison.is_different:
        return
    rows = comparison.explanation
    told, others = rows[:_MOST_ROWS], rows[_MOST_ROWS:]
    total = sum(row[4] for row in rows)
    largest = max((abs(row[4]) for row in rows), default=0)
    has_bars = paper.width >= _WITH_BARS
    name_width = paper.width - 2 - _NUMBER - _SHARE - (2 + _BAR if has_bars else 0)
    what = f"What explains it, adding up to {_signed(total).strip()}"
    _write_row([(what, "bold"), (" a step", "dim")], paper)
    lines = [(_cause(row), row[4], row[5]) for row in told]
    if others:
        rest = sum(row[4] for row in others)
        lines.append((f"{len(others)} smaller ones", rest, rest / total if total else None))
    for name, difference, share in lines:
        percent = "" if share is None else units.percent(share)
        paper.write([
            ("  " + pad(cut(printable(name), name_width), name_width, right=False), ""),
            (_signed(difference), ""), (pad(percent, _SHARE, right=True), ""),
            ("  " + _bar(difference, largest, paper) if has_bars else "", _direction(difference)),
        ])  # fmt: skip
    paper.blank()


def _cause(row: tuple[Any, ...]) -> str:
    part, what = row[0], row[1]
    title = PART_TITLES.get(part, part)
    return title if what == "all of it" else f"{title}: {what}"


def _write_devices(comparison: Comparison, paper: Paper) -> None:
    rows = [row for row in comparison.devices if row[1] or row[2]]
    if not rows:
        return
    largest = max(abs(row[3]) for row in rows)
    name_width = max(len(title) for title in PART_TITLES.values())
    _write_heading("Devices, a step", name_width, ("A", "B", "B - A"), paper)
    for part, ns_a, ns_b, difference in rows:
        _write_row([
            ("  " + pad(part, name_width, right=False), ""), (_time(ns_a), ""), (_time(ns_b), ""),
            (_signed(difference), ""), (" " * _SHARE, ""),
            ("  " + _bar(difference, largest, paper), _direction(difference)),
        ], paper)  # fmt: skip
    paper.blank()


def _write_amounts(comparison: Comparison, paper: Paper) -> None:
    if not comparison.amounts:
        return
    name_width = max(len(amount_title(row[0])) for row in comparison.amounts)
    name_width = min(name_width, paper.width - 2 - 2 * _NUMBER - _SHARE)
    _write_heading("Memory and data", name_width, ("A", "B"), paper)
    for name, a, b in comparison.amounts:
        change = f"{(b / a - 1) * 100:+.0f}%" if a and b is not None else ""
        paper.write([
            ("  " + pad(cut(amount_title(name), name_width), name_width, right=False), ""),
            (pad(amount(name, a), _NUMBER, right=True), ""),
            (pad(amount(name, b), _NUMBER, right=True), ""),
            (pad(change, _SHARE, right=True), "dim"),
        ])  # fmt: skip
    paper.blank()


def amount_title(name: str) -> str:
    for ending in ("_bytes", "_ns", "_share"):
        name = name.removesuffix(ending)
    return printable(name.replace("_", " "))


def amount(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name.endswith("_bytes"):
        return units.size(value)
    if name.endswith("_ns"):
        return units.duration(value)
    if name.endswith("_share"):
        return units.percent(value)
    return f"{value:.2f}"


def _write_settings(comparison: Comparison, paper: Paper) -> None:
    if not comparison.settings:
        return
    paper.write([("Settings that differ", "bold")])
    for name, a, b in comparison.settings[:_MOST_SETTINGS]:
        line = f"  {name}: {a or '-'} -> {b or '-'}"
        if len(line) <= paper.width:
            paper.write([(printable_line(line), "")])
            continue
        paper.write([(printable_line(f"  {name}"), "")])
        for letter, value in (("A", a), ("B", b)):
            paper.write([(f"    {letter} ", "dim"), (cut(printable(value or "-"), paper.width - 6),
                                                      "")])  # fmt: skip
    if len(comparison.settings) > _MOST_SETTINGS:
        more = len(comparison.settings) - _MOST_SETTINGS
        paper.write([(f"  and {more} more: strobe compare A B --json", "dim")])
    paper.blank()


def printable_line(text: str) -> str:
    """Printable, with the spaces that indent it."""
    return " " * (len(text) - len(text.lstrip())) + printable(text)


def _write_heading(title: str, name_width: int, columns: tuple[str, ...], paper: Paper) -> None:
    heads = [(pad(name, _NUMBER, right=True), "dim") for name in columns]
    _write_row([(pad(title, name_width + 2, right=False), "bold"), *heads], paper)


def _write_row(line: Line, paper: Paper) -> None:
    """As many columns as fit."""
    while sum(len(text) for text, _ in line) > paper.width:
        line = line[:-1]
    paper.write(line)


def _time(ns: float) -> str:
    return pad(units.duration(ns), _NUMBER, right=True)


def _signed(ns: float) -> str:
    sign = "+" if ns > 0 else ""
    return pad(f"{sign}{units.duration(ns)}", _NUMBER, right=True)


def _direction(difference: float) -> str:
    return "red" if difference > 0 else "green"


def _bar(difference: float, largest: float, paper: Paper) -> str:
    return paper.bar(abs(difference) / largest, _BAR) if largest else ""
