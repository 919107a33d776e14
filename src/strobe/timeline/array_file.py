"""Named arrays and a few words about them in one file, mapped into memory when it is opened."""

import json
import mmap
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.timeline.rows import Array

_MAGIC = b"strobe timeline\n"
# Arrays begin at multiples of it, so that every type lies as processors like it.
_ALIGNMENT = 64
# Tracks of a hundred thousand threads; more is damage.
_LONGEST_HEAD = 1 << 28


class ArrayFile(NamedTuple):
    about: dict[str, Any]
    arrays: dict[str, Array]


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Whole or not at all: written beside, then renamed."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_head(about, arrays))
            for array in arrays.values():
                file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                file.write(np.ascontiguousarray(array).data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _head(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    listed = [[name, array.dtype.str, len(array)] for name, array in arrays.items()]
    text = json.dumps({"about": about, "arrays": listed}).encode()
    return _MAGIC + len(text).to_bytes(8, "little") + text


def read_about(path: Path) -> dict[str, Any] | None:
    """What the file is about; none where there is no such file, or it is of another make."""
    try:
        with path.open("rb") as file:
            head = _read_head(file.read(len(_MAGIC) + 8), file.read)
    except (OSError, ValueError):
        return None
    about: dict[str, Any] = head["about"]
    return about


def read(path: Path) -> ArrayFile:
    with path.open("rb") as file:
        try:
            head = _read_head(file.read(len(_MAGIC) + 8), file.read)
        except ValueError as error:
            raise UnreadableTrace.of("errors/run.bad-index", where=str(path)) from error
        at = file.tell()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays: dict[str, Array] = {}
    for name, kind, length in head["arrays"]:
        at += -at % _ALIGNMENT
        arrays[name] = np.frombuffer(mapped, kind, length, at) if length else np.zeros(0, kind)
        at += arrays[name].nbytes
    return ArrayFile(head["about"], arrays)


def _read_head(start: bytes, read: Any) -> dict[str, Any]:
    if not start.startswith(_MAGIC):
        raise ValueError("not ours")
    length = int.from_bytes(start[len(_MAGIC) :], "little")
    if length > _LONGEST_HEAD:
        raise ValueError("damaged")
    head: dict[str, Any] = json.loads(read(length))
    return head
