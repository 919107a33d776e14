"""The JSON objects of Chrome's trace event format: what of them is decoded, into which numbers."""

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np

from strobe.ingest.trace.codes import Array

_NS_PER_US = 1000
# Up to here a double holds microseconds with their nanoseconds; since 1970 it would not.
_LARGEST_EXACT_US = 2**53 / _NS_PER_US
_END_OF_TIME_US = 4e15
_FIRST_TIME = re.compile(rb'"ts"\s*:\s*"?(-?\d+(\.\d+)?)')
_NOTHING = msgspec.Raw(b"")
LONGEST_NAME = 4096

Label = int | str | float | None


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: Label = ""
    cat: Label = ""
    pid: Label = 0
    tid: Label = 0
    ts: float | str | None = None
    dur: float | str | None = None
    id: Label = None
    id2: msgspec.Raw = _NOTHING
    scope: Label = None
    bp: str | None = None
    bind_id: Label = None
    flow_in: bool | None = None
    flow_out: bool | None = None
    args: msgspec.Raw = _NOTHING


class ExactEvent(Event, gc=False):
    ts: Decimal | None = None  # type: ignore[assignment]


def event_kind(head: bytes) -> type[Event]:
    """Doubles where they are exact, decimals (four times slower) where they are not."""
    for time in _FIRST_TIME.finditer(head):
        if time.group(2) and abs(float(time.group(1))) > _LARGEST_EXACT_US:
            return ExactEvent
    return Event


def nanoseconds(values: list[Any]) -> tuple[Array, Array]:
    """Microseconds as integers of nanoseconds, and which of them are times at all."""
    if Decimal in set(map(type, values)):
        return _exact_nanoseconds(values)
    try:
        us = np.array(values, dtype=np.float64)  # None becomes nan, "12.5" a number
    except (ValueError, TypeError):
        us = np.array([_number(value) for value in values], dtype=np.float64)
    is_time = np.isfinite(us) & (np.abs(us) < _END_OF_TIME_US)
    us = np.where(is_time, us, 0.0)
    whole = us.astype(np.int64)
    # Whole microseconds since 1970 would lose digits in the product.
    return whole * _NS_PER_US + np.rint((us - whole) * _NS_PER_US).astype(np.int64), is_time


def _exact_nanoseconds(values: list[Any]) -> tuple[Array, Array]:
    found, is_time = [], []
    for value in values:
        number = _number(value)
        is_time.append(math.isfinite(number) and abs(number) < _END_OF_TIME_US)
        found.append(int((Decimal(value) * _NS_PER_US).to_integral_value()) if is_time[-1] else 0)
    return np.array(found, dtype=np.int64), np.array(is_time, dtype=bool)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        return math.nan


def text(label: Label) -> str:
    """A name, which some writers give as a number or not at all; the longest are cut."""
    if isinstance(label, str):
        return label if len(label) <= LONGEST_NAME else label[:LONGEST_NAME] + "…"
    return "" if label is None else str(label)


def arguments(raw: msgspec.Raw) -> dict[str, Any]:
    """The arguments of one event; {} if there are none or they are not what they should be."""
    if not raw:
        return {}
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def key_of(event: Event, label: Label) -> tuple[Any, ...]:
    """What events of one flow or one asynchronous span have in common, apart from names.

    Ids are numbers, or the same numbers as hexadecimal text.
    """
    scoped = arguments(event.id2)
    if "local" in scoped:
        return (event.pid, _id(scoped["local"]), event.scope)
    return (None, _id(scoped.get("global", label)), event.scope)


def _id(label: Any) -> Any:
    if isinstance(label, str):
        try:
            return int(label, 0)
        except ValueError:
            return label
    return label if type(label) in (int, float) else str(label)
