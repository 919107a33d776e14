"""What two runs reached, in sentences about the most important metric that both logged."""

from typing import Any

from strobe import units
from strobe.analyse.comparison.curves import LOWER
from strobe.analyse.comparison.metrics import LEVELS, METRICS
from strobe.messages import Message, message

Rows = list[tuple[Any, ...]]
Row = dict[str, Any]


def as_dicts(rows: Rows, names: tuple[str, ...]) -> list[Row]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def metrics_verdict(metrics: Rows, levels: Rows, letter: str) -> Message | None:
    """None if the runs share no metric."""
    if not metrics:
        return None
    row = as_dicts(metrics[:1], METRICS.column_names)[0]
    known = [each for each in as_dicts(levels, LEVELS.column_names)
             if each["tag"] == row["tag"] and each["progress"] == 1]  # fmt: skip
    ends = _ends(row, letter)
    reached = _reached(known[0], letter) if known else None
    if reached is None:
        return ends
    return message("comparison.metric-and-level", metric=ends, level=reached)


def _ends(row: Row, letter: str) -> Message:
    values = {"tag": row["tag"], "letter": letter, "a": _final(row["a_final"]),
              "b": _final(row["b_final"])}  # fmt: skip
    if row["a_final"] is None and row["b_final"] is None:
        return message("comparison.metric-neither-finite", tag=row["tag"], letter=letter)
    if row["a_final"] is None or row["b_final"] is None:
        gone = "A" if row["a_final"] is None else letter
        other = letter if row["a_final"] is None else "A"
        final = values["b"] if row["a_final"] is None else values["a"]
        return message("comparison.metric-not-finite", tag=row["tag"], run=gone, other=other,
                       final=final)  # fmt: skip
    if row["is_different"] is None:
        return message("comparison.metric-unknown", **values)
    if not row["is_different"]:
        return message("comparison.metric-alike", **values)
    is_lower = row["difference"] < 0
    change = "lower" if is_lower else "higher"
    if row["better"] is not None:
        change = "better" if is_lower == (row["better"] == LOWER) else "worse"
    return message(f"comparison.metric-{change}", **values)


def _final(value: float | None) -> str:
    return "" if value is None else units.quantity(value)


def _reached(row: Row, letter: str) -> Message | None:
    """None if neither run reaches the level."""
    level = units.quantity(row["level"])
    places = {"A": _place(row["a_step"], row["a_ns"]), letter: _place(row["b_step"], row["b_ns"])}
    found = [(run, place) for run, place in places.items() if place is not None]
    if len(found) == 2:
        return message("comparison.level-of-both", level=level, letter=letter,
                       a=places["A"], b=places[letter])  # fmt: skip
    if not found:
        return None
    missing = next(run for run, place in places.items() if place is None)
    return message("comparison.level-of-one", level=level, run=found[0][0], place=found[0][1],
                   other=missing)  # fmt: skip


def _place(step: int | None, ns: int | None) -> Message | None:
    if step is None:
        return None
    if ns is None:
        return message("comparison.at-step", step=units.count(step))
    return message("comparison.at-step-after", step=units.count(step), time=units.duration(ns))
