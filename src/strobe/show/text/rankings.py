"""The most expensive kernels, operators and modules, on the one page."""

import re
from typing import Any

from rich.cells import cell_len

from strobe import units
from strobe.messages import localized, message
from strobe.show.text.cells import printable
from strobe.show.text.layout import cut, pad
from strobe.show.text.paper import Paper

_BAR = 14
_RANKING_WIDTH = 2 + 9 + 7 + 2 + _BAR + 2  # of a line of a ranking, less its name and note
_LONGEST_NOTE = 18
# In less room, a kernel's name is shown without its operator.
_ROOM_FOR_TWO = 30


def write_kernels(rows: list[dict[str, Any]], paper: Paper) -> None:
    if not rows:
        return
    steps = max(1, rows[0]["steps"])
    calls = [_calls(row["calls"], steps) for row in rows]
    room = paper.width - _RANKING_WIDTH - max(map(cell_len, calls))
    _write_ranking(
        "summary.kernels",
        "summary.kernels-per-step" if rows[0]["steps"] else "summary.kernels-in-all",
        [
            (_kernel(row, room), row["ns_per_step"], row["share"], note)
            for row, note in zip(rows, calls, strict=True)
        ],
        paper,
        has_calls=True,
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
        operator = " ← " + cut(operator, max(room // 3, room - cell_len(name) - 3))
    return cut(name, room - cell_len(operator), tail_ratio=0.3) + operator


def write_operators(summary: dict[str, Any], paper: Paper) -> None:
    rows = summary["operator_types"]
    if not rows:
        return
    steps = max(1, summary["recorded"]["operator_steps"])
    is_on_device = rows[0]["device_ns"] is not None
    _write_ranking(
        "summary.operators",
        "summary.operators-on-device" if is_on_device else "summary.operators-on-host",
        [
            (
                row["name"],
                row["device_ns_per_step" if is_on_device else "self_ns_per_step"],
                row["share"],
                _calls(row["calls"], steps),
            )
            for row in rows
        ],
        paper,
        [row["self_ns_per_step"] for row in rows] if is_on_device else None,
        has_calls=True,
    )


def write_modules(summary: dict[str, Any], paper: Paper) -> None:
    rows = summary["modules"]
    if not rows:
        return
    is_on_device = rows[0]["device_own_ns"] is not None
    _write_ranking(
        "summary.modules",
        "summary.modules-on-device" if is_on_device else "summary.modules-on-host",
        [
            (
                row["scope"] or localized("summary.whole-model"),
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
    *,
    has_calls: bool = False,
) -> None:
    """Rows of name, time, share and note.

    `title` and `what` are ids of messages, `host_ns` is the host time of each row if its own is
    device time, and with `has_calls` the notes are numbers of calls.
    """
    paper.write([
        (localized(title), "bold"), (localized("summary.about", what=message(what)), "dim"),
    ])  # fmt: skip
    note_width = min(_LONGEST_NOTE, max(cell_len(note) for *_, note in rows))
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
            (pad(cut(note, note_width), note_width, right=has_calls), "dim"),
        ])  # fmt: skip
    paper.blank()


def _calls(calls: int, steps: int) -> str:
    """The number of calls per step: 12×, 0.5×."""
    each = calls / steps
    is_whole = each >= 10 or each == int(each)
    return localized("summary.calls", count=units.count(round(each)) if is_whole else f"{each:.1f}")
