"""The hyperparameters of the hparams plugin, which are in the metadata of a tag."""

import struct
from collections.abc import Callable, Iterator
from typing import Any

from strobe.ingest.formats.event_files.facts import fact
from strobe.ingest.formats.xplane.wire import fields

START = "_hparams_/session_start_info"
TAGS = ("_hparams_/experiment", START, "_hparams_/session_end_info")
_START_INFO, _VALUES = 3, 1
_NUMBER, _TEXT, _BOOL = 2, 3, 4


def hyperparameters(content: bytes, broken: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Rows of `hyperparameters`, without their source."""
    for number, info in fields(content, broken):
        if number != _START_INFO or not isinstance(info, bytes):
            continue
        for part, entry in fields(info, broken):
            if part == _VALUES and isinstance(entry, bytes):
                yield from _entry(entry, broken)


def _entry(entry: bytes, broken: Callable[[], None]) -> Iterator[dict[str, Any]]:
    name, value = "", b""
    for number, part in fields(entry, broken):
        if isinstance(part, bytes) and number == 1:
            name = part.decode("utf-8", "replace")
        elif isinstance(part, bytes) and number == 2:
            value = part
    if name:
        yield {"name": name, **fact(_value(value, broken))}


def _value(data: bytes, broken: Callable[[], None]) -> Any:
    found: Any = None
    for number, value in fields(data, broken):
        if number == _BOOL and isinstance(value, int):
            found = bool(value)
        elif number == _NUMBER and isinstance(value, bytes) and len(value) == 8:
            found = struct.unpack("<d", value)[0]
        elif number == _TEXT and isinstance(value, bytes):
            found = value.decode("utf-8", "replace")
    return found
