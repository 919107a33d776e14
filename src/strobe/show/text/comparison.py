"""Two runs side by side for a person, for 80 columns and more."""

from typing import Any

from rich.cells import cell_len

from strobe import units
from strobe.analyse.comparison.runs import Comparison
from strobe.messages import in_language, localized, users_language
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.metrics_comparison import write_metrics
from strobe.show.text.paper import Line, Paper

WIDEST = 120
_NAME = 16  # cells of the name of a part, in either language
_NUMBER = 11  # cells of a time or a difference
_SHARE = 8
_BAR = 12
# On narrower paper the names need the room of the bars.
_WITH_BARS = 64
# Rows of an explanation that are shown; the others are summed.
_MOST_ROWS = 10
_MOST_SETTINGS = 20

# Messages that name the parts of a step and of a device's time.
_STEP_PARTS = {
    "step": "comparison.part-step",
    "data": "summary.part-data",
    "gap": "comparison.part-gap",
    "forward": "summary.part-forward",
    "backward": "summary.part-backward",
    "all_reduce": "summary.part-communication",
    "update": "summary.part-update",
    "rest": "summary.part-rest",
}
_DEVICE_PARTS = {
    "compute": "summary.device-compute",
    "communication": "summary.part-communication",
    "memory": "summary.device-memory",
    "idle": "summary.device-idle",
}


def write(comparison: Comparison, paper: Paper, outcome: str = "") -> None:
    """`outcome` is a sentence about the advice for the first run, if the second applied it."""
    paper.width = min(paper.width, WIDEST)
    _write_headline(comparison, paper)
    if outcome:
        paper.write_wrapped(in_language(outcome, users_language()))
        paper.blank()
    if comparison.has_steps:
        _write_steps(comparison, paper)
    _write_explanation(comparison, paper)
    write_metrics(comparison, paper)
    _write_devices(comparison, paper)
    _write_amounts(comparison, paper)
    _write_settings(comparison, paper)


def _write_headline(comparison: Comparison, paper: Paper) -> None:
    write_run("A", comparison.a, comparison.steps_a, comparison.mean_a_ns, paper)
    write_run("B", comparison.b, comparison.steps_b, comparison.mean_b_ns, paper)
    paper.blank()
    paper.write_wrapped(verdict_sentence(comparison), f"bold {_colour(comparison)}".strip())
    if comparison.has_steps and comparison.metrics_verdict is not None:
        paper.write_wrapped(in_language(comparison.metrics_verdict, users_language()), "bold")
    paper.blank()


def write_run(letter: str, path: str, steps: int, mean_ns: int, paper: Paper) -> None:
    id = "comparison.run-of-one-step" if steps == 1 else "comparison.run"
    length = localized(id, count=units.count(steps), mean=units.duration(mean_ns))
    if not steps:
        length = localized("comparison.run-of-metrics")
    room = paper.width - cell_len(length) - 5
    paper.write([
        (f"{letter}  ", "bold"), (pad(cut(printable(path), room), room, right=False), ""),
        (f"  {length}", "dim"),
    ])  # fmt: skip


def verdict_sentence(comparison: Comparison) -> str:
    verdict = in_language(comparison.verdict, users_language())
    if not comparison.has_steps:  # begins with the name of a metric
        return verdict
    return verdict[0].upper() + verdict[1:]


def part_title(part: str) -> str:
    """A part of a step in the user's language."""
    return localized(_STEP_PARTS[part]) if part in _STEP_PARTS else printable(part)


def change(ratio: float) -> str:
    """+5%: how much more or less than at a ratio of 1."""
    return f"{(ratio - 1) * 100:+.0f}%"


def _colour(comparison: Comparison) -> str:
    if not comparison.is_different:
        return ""
    return "red" if comparison.step_ratio.ratio > 1 else "green"


def _write_steps(comparison: Comparison, paper: Paper) -> None:
    rows = [row for row in comparison.steps if row[1] or row[2]]
    largest = max((abs(row[3]) for row in rows[1:]), default=0)
    _write_heading(localized("comparison.typical-step"), _NAME, ("A", "B", "B - A"), paper)
    for part, ns_a, ns_b, difference, ratio in rows:
        relative = "" if ratio is None else change(ratio)
        style = "bold" if part == "step" else ""
        bar = "" if part == "step" else _bar(difference, largest, paper)
        _write_row([
            ("  " + pad(part_title(part), _NAME, right=False), style),
            (_time(ns_a), style), (_time(ns_b), style), (_signed(difference), style),
            (pad(relative, _SHARE, right=True), style), ("  " + bar, _direction(difference)),
        ], paper)  # fmt: skip
    paper.blank()


def _write_explanation(comparison: Comparison, paper: Paper) -> None:
    if not comparison.is_different:
        return
    rows = comparison.explanation
    shown, others = rows[:_MOST_ROWS], rows[_MOST_ROWS:]
    total = sum(row[4] for row in rows)
    largest = max((abs(row[4]) for row in rows), default=0)
    has_bars = paper.width >= _WITH_BARS
    name_width = paper.width - 2 - _NUMBER - _SHARE - (2 + _BAR if has_bars else 0)
    paper.write_wrapped(localized("comparison.explanation", total=_difference(total)), "bold")
    lines = [(_cause(row), row[4], row[5]) for row in shown]
    if others:
        rest = sum(row[4] for row in others)
        lines.append((_smaller(len(others)), rest, rest / total if total else None))
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
    title = part_title(part)
    if what == "all of it":
        return title
    return localized("comparison.cause", part=title, what=what)


def _smaller(count: int) -> str:
    id = "comparison.one-smaller" if count == 1 else "comparison.smaller"
    return localized(id, count=units.count(count))


def _write_devices(comparison: Comparison, paper: Paper) -> None:
    rows = [row for row in comparison.devices if row[1] or row[2]]
    if not rows:
        return
    largest = max(abs(row[3]) for row in rows)
    _write_heading(localized("comparison.devices"), _NAME, ("A", "B", "B - A"), paper)
    for part, ns_a, ns_b, difference in rows:
        _write_row([
            ("  " + pad(localized(_DEVICE_PARTS[part]), _NAME, right=False), ""),
            (_time(ns_a), ""), (_time(ns_b), ""),
            (_signed(difference), ""), (" " * _SHARE, ""),
            ("  " + _bar(difference, largest, paper), _direction(difference)),
        ], paper)  # fmt: skip
    paper.blank()


def _write_amounts(comparison: Comparison, paper: Paper) -> None:
    if not comparison.amounts:
        return
    title = localized("comparison.amounts")
    widest = max(cell_len(amount_title(row[0])) for row in comparison.amounts)
    name_width = max(widest, cell_len(title) - 2)
    name_width = min(name_width, paper.width - 2 - 2 * _NUMBER - _SHARE)
    _write_heading(title, name_width, ("A", "B"), paper)
    for name, a, b in comparison.amounts:
        relative = change(b / a) if a and b is not None else ""
        paper.write([
            ("  " + pad(cut(amount_title(name), name_width), name_width, right=False), ""),
            (pad(amount(name, a), _NUMBER, right=True), ""),
            (pad(amount(name, b), _NUMBER, right=True), ""),
            (pad(relative, _SHARE, right=True), "dim"),
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
    paper.write([(localized("comparison.settings"), "bold")])
    for name, a, b in comparison.settings[:_MOST_SETTINGS]:
        setting = localized("comparison.setting", name=name, a=a or "-", b=b or "-")
        line = "  " + printable(setting)
        if cell_len(line) <= paper.width:
            paper.write([(line, "")])
            continue
        paper.write([("  " + cut(printable(name), paper.width - 2), "")])
        for letter, value in (("A", a), ("B", b)):
            paper.write([(f"    {letter} ", "dim"), (cut(printable(value or "-"), paper.width - 6),
                                                      "")])  # fmt: skip
    if len(comparison.settings) > _MOST_SETTINGS:
        count = units.count(len(comparison.settings) - _MOST_SETTINGS)
        paper.write([("  " + localized("comparison.more-settings", count=count), "dim")])
    paper.blank()


def _write_heading(title: str, name_width: int, columns: tuple[str, ...], paper: Paper) -> None:
    heads = [(pad(name, _NUMBER, right=True), "dim") for name in columns]
    _write_row([(pad(title, name_width + 2, right=False), "bold"), *heads], paper)


def _write_row(line: Line, paper: Paper) -> None:
    """As many columns as fit."""
    while sum(cell_len(text) for text, _ in line) > paper.width:
        line = line[:-1]
    paper.write(line)


def _time(ns: float) -> str:
    return pad(units.duration(ns), _NUMBER, right=True)


def _signed(ns: float) -> str:
    return pad(_difference(ns), _NUMBER, right=True)


def _difference(ns: float) -> str:
    """+1.23 ms, -1.23 ms."""
    sign = "+" if ns > 0 else ""
    return f"{sign}{units.duration(ns)}"


def _direction(difference: float) -> str:
    return "red" if difference > 0 else "green"


def _bar(difference: float, largest: float, paper: Paper) -> str:
    return paper.bar(abs(difference) / largest, _BAR) if largest else ""
