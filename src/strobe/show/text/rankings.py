"""What costs most, on the one page: kernels, operators, modules."""

import re
from typing import Any

from strobe import units
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.paper import Paper

_BAR = 14
_RANKING_WIDTH = 2 + 9 + 7 + 2 + _BAR + 2  # of a line of a ranking, less its name and note
_ROOM_FOR_TWO = 30


def write_kernels(rows: list[dict[str, Any]], paper: Paper) -> None:
    if not rows:
        return
    steps = max(1, rows[0]["steps"])
    room = paper.width - _RANKING_WIDTH - max(len(_each(row["calls"], steps)) + 2 for row in rows)
    _write_ranking(
        "Kernels",
        "device time per step" if rows[0]["steps"] else "device time",
        [
            (
                _kernel(row, room),
                row["ns_per_step"],
                row["share"],
                f"{_each(row['calls'], steps)} ×",
            )
            for row in rows
        ],
        paper,
    )


def _kernel(row: dict[str, Any], room: int) -> str:
    """Its bare name (no namespace, template arguments, parameters), and who launches it."""
    name = row["name"].removeprefix("void ")
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", name)) != name:
        name = shorter
    name = printable(re.split(r"[<(]", name)[0].rpartition("::")[2].strip() or row["name"])
    operator = printable(row["operator"] or "").removeprefix("aten::")
    if operator and room < _ROOM_FOR_TWO:
        operator = ""
    if operator:
        operator = " ← " + cut(operator, max(room // 3, room - len(name) - 3))
    return cut(name, room - len(operator), tail_ratio=0.3) + operator


def write_operators(summary: dict[str, Any], paper: Paper) -> None:
    rows = summary["operator_types"]
    if not rows:
        return
    steps = max(1, summary["recorded"]["operator_steps"])
    is_on_device = rows[0]["device_ns"] is not None
    _write_ranking(
        "Operators",
        "device time per step, host self time" if is_on_device else "self time per step",
        [
            (
                row["name"],
                row["device_ns_per_step" if is_on_device else "self_ns_per_step"],
                row["share"],
                f"{_each(row['calls'], steps)} ×",
            )
            for row in rows
        ],
        paper,
        [row["self_ns_per_step"] for row in rows] if is_on_device else None,
    )


def write_modules(summary: dict[str, Any], paper: Paper) -> None:
    rows = summary["modules"]
    if not rows:
        return
    is_on_device = rows[0]["device_own_ns"] is not None
    _write_ranking(
        "Modules",
        "own device time per step, host time" if is_on_device else "own operators per step",
        [
            (
                row["scope"] or "(model)",
                row["device_own_ns_per_step" if is_on_device else "own_ns_per_step"],
                row["share"],
                row["class"] or "",
            )
            for row in rows
        ],
        paper,
        [row["own_ns_per_step"] for row in rows] if is_on_device else None,
    )


def _write_ranking(
    title: str,
    what: str,
    rows: list[tuple[str, int, float, str]],
    paper: Paper,
    host_ns: list[int] | None = None,
) -> None:
    """`host_ns`: the host time of each row, where its own is device time."""
    paper.write([(title, "bold"), (f", {what}", "dim")])
    note_width = min(18, max(len(note) for *_, note in rows))
    host_width = 9 if host_ns else 0
    name_width = paper.width - _RANKING_WIDTH - note_width - host_width
    for number, (name, ns, share, note) in enumerate(rows):
        host = units.duration(host_ns[number]) if host_ns else ""
        paper.write([
            ("  " + pad(cut(printable(name), name_width), name_width, right=False), ""),
            (pad(units.duration(ns), 9, right=True), ""),
            (pad(host, host_width, right=True), "dim"),
            (pad(units.percent(share), 7, right=True) + "  ", ""),
            (paper.bar(share, _BAR) + "  ", "cyan"),
            (pad(cut(note, note_width), note_width, right=note.endswith("×")), "dim"),
        ])  # fmt: skip
    paper.blank()


def _each(calls: int, steps: int) -> str:
    each = calls / steps
    return f"{each:,.0f}" if each >= 10 or each == int(each) else f"{each:.1f}"
