"""Protobuf messages of many rows at once: every field is a column.

A `Column` knows how many bytes each row has before any are written, so that lengths of nested
messages need no second pass; `joined` writes all rows into one array.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from strobe.show.event_files.messages import key

Array = np.ndarray[Any, np.dtype[Any]]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Piece(NamedTuple):
    """Bytes of each row: `size` of them from `start` on in a source that the rows may share."""

    source: Array  # uint8
    start: Array | int
    size: Array | int


class Column(NamedTuple):
    """Some fields of the message of every row."""

    pieces: tuple[Piece, ...]

    @property
    def size(self) -> Array | int:
        total: Array | int = 0
        for piece in self.pieces:
            total = total + piece.size
        return total


class Texts:
    """Texts that many rows refer to by number."""

    def __init__(self, values: Sequence[str]) -> None:
        encoded = [value.encode("utf-8", "surrogateescape") for value in values]
        self.sizes = np.array([len(value) for value in encoded], dtype=np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.source = np.frombuffer(b"".join(encoded), dtype=np.uint8)


def constant(value: bytes) -> Column:
    return Column((Piece(np.frombuffer(value, dtype=np.uint8), 0, len(value)),))


def fixed(values: Array) -> Column:
    """The bytes of an array of numbers, without a key."""
    width = values.dtype.itemsize
    source = np.ascontiguousarray(values).view(np.uint8)
    return Column((Piece(source, np.arange(len(values)) * width, width),))


def doubles(number: int, values: Array) -> Column:
    return concatenated(constant(key(number, _FIXED64)), fixed(values.astype("<f8")))


def floats(number: int, values: Array) -> Column:
    return concatenated(constant(key(number, _FIXED32)), fixed(values.astype("<f4")))


def integers(number: int, values: Array) -> Column:
    return concatenated(constant(key(number, _VARINT)), _varints(values))


def texts(number: int, values: Texts, codes: Array) -> Column:
    sizes = values.sizes[codes]
    piece = Piece(values.source, values.starts[codes], sizes)
    return concatenated(constant(key(number, _BYTES)), _varints(sizes), Column((piece,)))


def message(number: int, *fields: Column) -> Column:
    inside = concatenated(*fields)
    size = inside.size
    length = _varints(size) if isinstance(size, np.ndarray) else _varints(np.array([size]))
    return concatenated(constant(key(number, _BYTES)), length, inside)


def concatenated(*columns: Column) -> Column:
    return Column(tuple(piece for column in columns for piece in column.pieces))


def joined(column: Column, count: int) -> tuple[Array, Array]:
    """The bytes of all rows, one row after the other, and where each row begins."""
    sizes = np.broadcast_to(np.asarray(column.size, dtype=np.int64), (count,))
    begins = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), dtype=np.uint8)
    at = begins.copy()
    for piece in column.pieces:
        _copy(piece, out, at)
        at += piece.size
    return out, begins


def _copy(piece: Piece, out: Array, at: Array) -> None:
    source, start, size = piece
    if isinstance(size, np.ndarray):
        total = int(size.sum())
        within = np.arange(total) - np.repeat(np.cumsum(size) - size, size)
        starts = np.repeat(np.broadcast_to(start, size.shape), size)
        out[np.repeat(at, size) + within] = source[starts + within]
        return
    for place in range(size):
        out[at + place] = source[start + place]


def _varints(values: Array) -> Column:
    rest = values.astype(np.int64).view(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    table = np.empty((len(rest), width), dtype=np.uint8)
    sizes = np.ones(len(rest), dtype=np.int64)
    for place in range(width):
        table[:, place] = rest & np.uint64(0x7F)
        rest = rest >> np.uint64(7)
        goes_on = rest > 0
        table[goes_on, place] |= 0x80
        sizes += goes_on
    if len(values) == 1:  # a length that all rows share
        return constant(table[0, : sizes[0]].tobytes())
    size: Array | int = int(sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else sizes
    return Column((Piece(table.ravel(), np.arange(len(values)) * width, size),))
