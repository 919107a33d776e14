"""The part of the summary that is about steps: how long they are, and what they are made of."""

import functools
from collections.abc import Sequence
from typing import Any

from strobe import units
from strobe.messages import localized, message
from strobe.show.text.layout import pad
from strobe.show.text.paper import Line, Paper

_BAR = 14
_LABEL = 20

# The parts of a step: letter for plain paper, colour for a terminal, the message that names it.
_PARTS = {
    "gap": ("g", "yellow", "summary.part-gap"),
    "forward": ("F", "blue", "summary.part-forward"),
    "backward": ("B", "magenta", "summary.part-backward"),
    "all_reduce": ("A", "red", "summary.part-communication"),
    "update": ("U", "green", "summary.part-update"),
    "rest": ("r", "white", "summary.part-rest"),
    "recorder": ("s", "bright_black", "summary.part-recorder"),
}

# The parts as the sentence about the largest one names them.
_DESCRIPTIONS = {
    "gap": "summary.what-gap",
    "forward": "summary.what-forward",
    "backward": "summary.what-backward",
    "all_reduce": "summary.what-communication",
    "update": "summary.what-update",
    "rest": "summary.what-rest",
}

_COLUMNS = (
    ("summary.mean", 9), ("summary.median", 9), ("summary.p95", 9), ("summary.share", 7),
)  # fmt: skip


def counting_notes(steps: dict[str, Any]) -> list[str]:
    """Which steps the averages leave out, and whether they include slowed ones."""
    return [note for note in (_excluded_steps(steps), _slowed_steps(steps)) if note]


def _excluded_steps(steps: dict[str, Any]) -> str:
    warm_up, slowed = steps["left_out"]["warm_up"], steps["left_out"]["slowed"]
    counts = {
        "count": units.count(steps["count"]),
        "total": units.count(steps["count"] + warm_up + slowed),
    }
    if warm_up and slowed:
        counts |= {"warm_up": units.count(warm_up), "slowed": units.count(slowed)}
        return localized("summary.without-warm-up-and-slowed", **counts)
    if warm_up:
        return localized("summary.without-warm-up", **counts, warm_up=units.count(warm_up))
    if slowed:
        return localized("summary.without-slowed", **counts, slowed=units.count(slowed))
    return ""


def _slowed_steps(steps: dict[str, Any]) -> str:
    """With too few other steps, averages include those that full recording slowed down."""
    slowed, count = steps["counted_slowed"], steps["count"]
    if not slowed:
        return ""
    if slowed >= count:
        if count == 1:
            return localized("summary.only-step-slowed")
        return localized("summary.all-steps-slowed", count=units.count(count))
    if slowed == 1:
        return localized("summary.one-step-slowed", count=units.count(count))
    return localized("summary.steps-slowed", slowed=units.count(slowed), count=units.count(count))


def largest_part(parts: list[dict[str, Any]]) -> str:
    """A sentence about the part that takes the most time."""
    shares = {part["part"]: part["share"] for part in parts}
    largest = max(_DESCRIPTIONS, key=lambda name: shares[name])
    what = _DESCRIPTIONS[largest]
    if largest == "gap" and shares["data"] > shares["gap"] / 2:
        what = "summary.what-gap-for-data"
    if largest == "rest" and not shares["forward"] + shares["backward"]:
        what = "summary.what-undivided"
    id = "summary.most-of-a-step" if shares[largest] >= 0.5 else "summary.largest-part"
    return localized(id, share=units.percent(shares[largest]), what=message(what))


def write_steps(steps: dict[str, Any], paper: Paper) -> None:
    if not steps["count"]:
        return
    parts = {part["part"]: part for part in steps["parts"]}
    _write_scale(parts, paper)
    paper.blank()
    heading = pad(localized("summary.part"), _LABEL, right=False)
    heading += "".join(pad(localized(id), width, right=True) for id, width in _COLUMNS)
    paper.write([("  " + heading, "dim")])
    for name, (letter, colour, title) in _PARTS.items():
        part = parts[name]
        if not part["max_ns"]:
            continue
        mark = "█" if paper.is_terminal else letter
        line = _part_line(localized(title), part, colour, paper)
        paper.write([(f"{mark} ", colour), *line])
        if name == "gap" and parts["data"]["max_ns"]:
            waiting = "  " + localized("summary.part-data")
            paper.write([("  ", ""), *_part_line(waiting, parts["data"], "dim", paper)])
    if steps["outlier_count"]:
        paper.blank()
        paper.write_wrapped(_outliers(steps), "yellow")
    paper.blank()


def _outliers(steps: dict[str, Any]) -> str:
    count, total = steps["outlier_count"], units.count(steps["count"])
    longest = listed([_outlier(row, steps) for row in steps["outliers"]])
    if count == 1:
        return localized("summary.one-outlier", total=total, steps=longest)
    is_all = count <= len(steps["outliers"])
    id = "summary.outliers" if is_all else "summary.longest-outliers"
    return localized(id, count=units.count(count), total=total, steps=longest)


def _outlier(row: dict[str, Any], steps: dict[str, Any]) -> str:
    step, duration = row["step"], units.duration(row["dur_ns"])
    if steps["rank_count"] > 1:
        return message("summary.outlier-of-rank", rank=row["rank"], step=step, duration=duration)
    return message("summary.outlier", step=step, duration=duration)


def listed(items: Sequence[str]) -> str:
    """Items, at least one, as a list in a sentence."""
    return functools.reduce(
        lambda before, item: message("summary.list", before=before, item=item), items
    )


def _part_line(title: str, part: dict[str, Any], colour: str, paper: Paper) -> Line:
    figures = "".join(
        pad(units.duration(part[name]), 9, right=True)
        for name in ("mean_ns", "median_ns", "p95_ns")
    )
    share = pad(units.percent(part["share"]), 7, right=True)
    return [(pad(title, _LABEL, right=False), ""), (figures, ""), (share, ""),
            ("  ", ""), (paper.bar(part["share"], _BAR), colour)]  # fmt: skip


def _write_scale(parts: dict[str, Any], paper: Paper) -> None:
    """The average step to scale, without Strobe's own work."""
    drawn = {name: style for name, style in _PARTS.items() if name != "recorder"}
    paper.write(scale({name: parts[name]["share"] for name in drawn}, drawn, paper.width, paper))


def scale(
    shares: dict[str, float], styles: dict[str, tuple[str, str, str]], width: int, paper: Paper
) -> Line:
    """Parts to scale, side by side; every part that took any time has at least a cell."""
    names = [name for name in styles if shares[name] > 0]
    exact = [width * shares[name] for name in names]
    widths = [max(1, int(cells)) for cells in exact]
    while names and sum(widths) != width:
        step = 1 if sum(widths) < width else -1
        errors = [step * (exact[i] - widths[i]) for i in range(len(names))]
        candidates = [i for i in range(len(names)) if widths[i] + step >= 1]
        widths[max(candidates, key=errors.__getitem__)] += step
    line: Line = []
    for name, cells in zip(names, widths, strict=True):
        letter, colour, _ = styles[name]
        line.append((("█" if paper.is_terminal else letter) * cells, colour))
    return line
