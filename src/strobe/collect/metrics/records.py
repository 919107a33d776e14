"""Records of metrics as JSON: steps and settings in the types that JSON has."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from strobe.collect.metrics.numbers import Later, NotANumber, number


def as_json(record: dict[str, Any]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace")


def whole_number(step: Any) -> int | None:
    """A step as an integer: arrays and numpy's numbers are taken, too."""
    if step is None or step.__class__ is int:
        return step
    try:
        return int(step)
    except (TypeError, ValueError, OverflowError):
        return None


def settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON can hold as it is; anything else by its name."""
    return {str(name): _plain(value) for name, value in _items(values)}


def _items(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _items(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    try:
        return number_or_text(value)
    except Exception:  # its __str__ fails
        return type(value).__name__


def number_or_text(value: Any) -> Any:
    try:
        found = number(value)
    except NotANumber:
        return getattr(value, "__name__", None) or str(value)
    return str(value) if isinstance(found, Later) else found
