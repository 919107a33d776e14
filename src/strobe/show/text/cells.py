"""A value of a declared column as a person reads it."""

import json
import math
from decimal import Decimal
from typing import Any

from strobe import units
from strobe.model.schema import Column

# Columns of metrics: what was logged, and what became of it.
_FIGURES = frozenset(("value", "first", "last", "min", "max"))
_MOMENTS = {"ts_ns", "peak_ts_ns", "freed_ns"}
_SHARES = ("share", "_share", "_ratio")


def text(column: Column, value: Any, counter: str = "") -> str:
    """`counter` is the name of the counter that the row is about, which carries the unit."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, Decimal):  # what DuckDB makes of a literal like 0.5
        value = float(value)
    if isinstance(value, int | float):
        return _number(column.name, value, counter)
    if column.name in ("input_shapes", "output_shapes"):
        return _shapes(str(value))
    if column.name == "scope" and value == "":
        return "(model)"
    return printable(str(value))


def printable(value: str) -> str:
    """One line, and nothing that a terminal would obey."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(value.split()))


def is_share(column: Column) -> bool:
    return column.type == "f64" and column.name.endswith(_SHARES)


def is_number(column: Column) -> bool:
    return column.type in ("i64", "f64")


def unit(column: Column) -> str | None:
    """What its numbers count, for whoever formats them elsewhere; None for a plain number."""
    if column.type not in ("i64", "f64"):
        return None
    if column.name in _MOMENTS:
        return "moment_ns"
    return next((unit for ending, unit in _UNITS if column.name.endswith(ending)), None)


_UNITS = (
    ("flops_per_s", "flops/s"), ("bytes_per_s", "bytes/s"), ("_ns", "ns"), ("share", "share"),
    ("_ratio", "share"), ("flops", "flops"), ("bytes", "bytes"), ("address", "address"),
)  # fmt: skip


def title(column: Column) -> str:
    """The heading of a column: its name, less the unit that its cells already carry."""
    if column.type == "str":
        return column.name
    if column.name.endswith("_per_s"):
        return column.name.replace("_per_s", "/s")
    for ending in ("_ns", "_bytes"):
        if column.name.endswith(ending):
            return column.name.removesuffix(ending)
    return column.name.removeprefix("is_")


def _number(name: str, value: float, counter: str) -> str:
    if name in _FIGURES and not counter:  # of a metric: any size, and NaN is one
        return units.quantity(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    if counter and not name.endswith(("samples", "rank")):
        return measured(counter, value, is_rate=name != "last")
    if name in _MOMENTS:
        return units.moment(int(value))
    if name in ("id", "parent_id", "event_id", "track_id", "from_id", "to_id", "launcher_id"):
        return str(int(value))
    for ending, write in _BY_ENDING:
        if name.endswith(ending):
            return write(value)
    return f"0x{int(value):x}" if name == "address" else units.count(value)


_BY_ENDING = (
    ("_ns", units.duration),
    ("share", units.percent),
    ("_ratio", units.percent),
    ("flops_per_s", lambda value: units.rate(value, "FLOP/s")),
    ("bytes_per_s", lambda value: units.rate(value, "B/s")),
    ("flops", lambda value: units.rate(value, "FLOP")),
    ("bytes", units.size),
    ("thread_id", lambda value: str(int(value))),
    ("process", lambda value: str(int(value))),
    ("thread", lambda value: str(int(value))),
)


def measured(counter: str, value: float, is_rate: bool = True) -> str:
    """A value of a counter, in the unit that ends the counter's name."""
    cumulative = counter.endswith("_total")
    name = counter.removesuffix("_total")
    per_second = "/s" if cumulative and is_rate else ""
    if name.endswith("_cpu_ns") and per_second:
        return f"{value / 1e9:.2f} cores"
    if name.endswith("_ns"):
        return units.duration(value) + per_second
    if name.endswith("_bytes"):
        return units.size(value) + per_second
    if name.endswith("_permille"):
        return units.percent(value / 1000)
    if name.endswith("_milli"):
        return f"{value / 1000:.2f}"
    return units.count(round(value, 1)) + per_second


def _shapes(value: str) -> str:
    """[[64, 512], []] as 64×512, ·"""
    try:
        shapes = json.loads(value)
        return ", ".join(
            "×".join(map(str, shape)) if shape and isinstance(shape, list) else "·"
            for shape in shapes
        )
    except (ValueError, TypeError):
        return value
