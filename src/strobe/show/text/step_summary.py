"""The part of the summary that is about steps: how long they are, and what they are made of."""

from typing import Any

from strobe import units
from strobe.show.text.layout import pad
from strobe.show.text.paper import Line, Paper

_BAR = 14

# The parts of a step: letter for plain paper, colour for a terminal, what to call it.
_PARTS = {
    "gap": ("g", "yellow", "gap"),
    "forward": ("F", "blue", "forward"),
    "backward": ("B", "magenta", "backward"),
    "all_reduce": ("A", "red", "communication"),
    "update": ("U", "green", "update"),
    "rest": ("r", "white", "rest"),
    "recorder": ("s", "bright_black", "Strobe itself"),
}

_PHRASES = {
    "gap": "spent between steps: logging, evaluation, saving, whatever the loop does there",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "all_reduce": "communication with other ranks that no computation overlaps",
    "update": "the update of the parameters",
    "rest": "spent between the passes",
}


def left_out_steps(steps: dict[str, Any]) -> str:
    """Which steps the averages leave out."""
    reasons = {"warm_up": "warm-up", "slowed": "slowed by full recording"}
    counts = [(steps["left_out"][name], reason) for name, reason in reasons.items()]
    left_out = ", ".join(f"{count:,} {reason}" for count, reason in counts if count)
    total = steps["count"] + sum(count for count, _ in counts)
    text = (
        f"{steps['count']:,} of {total:,} steps counted; left out: {left_out}" if left_out else ""
    )
    return "; ".join(filter(None, [text, _counted_slowed(steps)]))


def _counted_slowed(steps: dict[str, Any]) -> str:
    """Where there are too few others, averages are over steps that full recording made longer."""
    slowed, count = steps["counted_slowed"], steps["count"]
    if not slowed:
        return ""
    which = (
        f"all {count:,} counted steps were"
        if slowed >= count
        else (f"{slowed:,} of the {count:,} counted steps {'was' if slowed == 1 else 'were'}")
    )
    return f"{which} recorded in full, which makes steps slower"


def largest_part(parts: list[dict[str, Any]]) -> str:
    shares = {part["part"]: part["share"] for part in parts}
    largest = max((name for name in _PARTS if name != "recorder"), key=lambda n: shares[n])
    phrase = _PHRASES[largest]
    if largest == "gap" and shares["data"] > shares["gap"] / 2:
        phrase = "the gap between steps, mostly waiting for data"
    if largest == "rest" and not shares["forward"] + shares["backward"]:
        phrase = "computation that the trace does not tell apart into forward and backward"
    how_much = "Most of it" if shares[largest] >= 0.5 else "The largest part"
    return f"{how_much}, {units.percent(shares[largest])}, is {phrase}"


def write_steps(steps: dict[str, Any], paper: Paper) -> None:
    if not steps["count"]:
        return
    parts = {part["part"]: part for part in steps["parts"]}
    _write_scale(parts, paper)
    paper.blank()
    columns = (("mean", 9), ("median", 9), ("p95", 9), ("share", 7))
    heading = pad("part", 20, right=False)
    heading += "".join(pad(name, width, right=True) for name, width in columns)
    paper.write([(f"  {heading}", "dim")])
    for name, (letter, colour, title) in _PARTS.items():
        part = parts[name]
        if not part["max_ns"]:
            continue
        mark = "█" if paper.is_terminal else letter
        paper.write([(f"{mark} ", colour), *_part_line(title, part, colour, paper)])
        if name == "gap" and parts["data"]["max_ns"]:
            paper.write(
                [("  ", ""), *_part_line("  waiting for data", parts["data"], "dim", paper)]
            )
    if steps["outlier_count"]:
        worst = ", ".join(
            f"{_rank(row, steps)}step {row['step']} ({units.duration(row['dur_ns'])})"
            for row in steps["outliers"]
        )
        count = steps["outlier_count"]
        outliers = f"{count:,} step" if count == 1 else f"{count:,} steps"
        more = ", …" if steps["outlier_count"] > len(steps["outliers"]) else ""
        paper.blank()
        paper.write_wrapped(
            f"{outliers} of {steps['count']:,} took much longer: {worst}{more}",
            "yellow",
        )
    paper.blank()


def _rank(row: dict[str, Any], steps: dict[str, Any]) -> str:
    return f"rank {row['rank']} " if steps["rank_count"] > 1 else ""


def _part_line(title: str, part: dict[str, Any], colour: str, paper: Paper) -> Line:
    figures = "".join(
        pad(units.duration(part[name]), 9, right=True)
        for name in ("mean_ns", "median_ns", "p95_ns")
    )
    share = pad(units.percent(part["share"]), 7, right=True)
    return [(pad(title, 20, right=False), ""), (figures, ""), (share, ""),
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
