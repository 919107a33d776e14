"""Named arrays and facts about them in one file, mapped into memory when it is opened.

First the arrays, then a description of them in JSON, then its length.
"""

import contextlib
import json
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from strobe.errors import UnreadableTrace

Array = np.ndarray[Any, Any]

_MAGIC = b"strobe arrays 1\n"
_LENGTH_BYTES = 8
# Arrays begin at multiples of it, so that every type is aligned.
_ALIGNMENT = 64
# Tracks of a hundred thousand threads; more is damage.
_LONGEST_HEAD = 1 << 28


class ArrayFile(NamedTuple):
    about: dict[str, Any]
    arrays: dict[str, Array]


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Whole or not at all: written under another name, then renamed."""
    with writing(path, about) as add:
        for name, array in arrays.items():
            add(name, array)


@contextlib.contextmanager
def writing(path: Path, about: Mapping[str, Any]) -> Iterator[Callable[[str, Array], None]]:
    """Add one array after the other, so that memory need not hold them together.

    `about` is read at the end: it may still be filled in the meantime.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            listed: list[list[Any]] = []

            def add(name: str, array: Array) -> None:
                file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                listed.append([name, array.dtype.str, len(array), file.tell()])
                file.write(np.ascontiguousarray(array).data)

            file.write(_MAGIC)
            yield add
            text = json.dumps({"about": about, "arrays": listed}).encode()
            file.write(text + len(text).to_bytes(_LENGTH_BYTES, "little"))
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_about(path: Path) -> dict[str, Any] | None:
    """What the file is about; None if there is no such file, or it has another format."""
    try:
        with path.open("rb") as file:
            head = _read_head(file)
    except (OSError, ValueError):
        return None
    about: dict[str, Any] = head["about"]
    return about


def read(path: Path, *, is_mapped: bool = True) -> ArrayFile:
    """Small files that are read whole need no mapping, which lasts as long as their arrays."""
    with path.open("rb") as file:
        try:
            head = _read_head(file)
        except ValueError as error:
            raise UnreadableTrace.of("errors/run.bad-index", where=str(path)) from error
        file.seek(0)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if is_mapped else file.read()
    arrays: dict[str, Array] = {}
    for name, kind, length, at in head["arrays"]:
        arrays[name] = np.frombuffer(data, kind, length, at) if length else np.zeros(0, kind)
    return ArrayFile(head["about"], arrays)


def _read_head(file: BinaryIO) -> dict[str, Any]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("another format")
    end = file.seek(0, os.SEEK_END) - _LENGTH_BYTES
    file.seek(max(end, 0))
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if not 0 < length <= min(_LONGEST_HEAD, end - len(_MAGIC)):
        raise ValueError("damaged")
    file.seek(end - length)
    head: dict[str, Any] = json.loads(file.read(length))
    return head
