"""Columns of numbers as bytes: a head in JSON that names them, then the columns, little-endian."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from strobe.timeline.rows import Array

# Columns begin at multiples of it, as typed arrays of browsers need.
_ALIGNMENT = 8


def packed(about: Mapping[str, Any], columns: Mapping[str, Array]) -> bytes:
    """Four bytes with the length of the head, the head, the columns."""
    parts, at, listed = [], 0, []
    for name, column in columns.items():
        body = np.ascontiguousarray(column, column.dtype.newbyteorder("<")).tobytes()
        listed.append({"name": name, "type": column.dtype.name, "at": at, "length": len(column)})
        padding = -len(body) % _ALIGNMENT
        parts += [body, b"\0" * padding]
        at += len(body) + padding
    head = json.dumps({**about, "columns": listed}, separators=(",", ":")).encode()
    head += b" " * (-(len(head) + 4) % _ALIGNMENT)
    return b"".join([len(head).to_bytes(4, "little"), head, *parts])


def unpacked(body: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    length = int.from_bytes(body[:4], "little")
    about: dict[str, Any] = json.loads(body[4 : 4 + length])
    start = 4 + length
    columns = {
        column["name"]: np.frombuffer(
            body, np.dtype(column["type"]), column["length"], start + column["at"]
        )
        for column in about.pop("columns")
    }
    return about, columns
