"""MindSpore's TensorProto as arrays."""

from collections.abc import Callable

import numpy as np

from strobe.ingest.formats.xplane.wire import Broken, fields, signed, varint
from strobe.ingest.trace.codes import Array

_DIMS, _TYPE, _FLOATS, _INTS, _LONGS, _DOUBLES, _ULONGS, _RAW = 1, 2, 3, 4, 5, 6, 7, 8
_FIXED = {_FLOATS: "<f4", _DOUBLES: "<f8"}
TYPES = {
    1: "?", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "u1", 7: "<u2", 8: "<u4", 9: "<u8",
    10: "<f2", 11: "<f4", 12: "<f8",
}  # fmt: skip
_EXACT = {"b1", "i1", "i2", "u1", "u2", "f2", "f4"}  # what a float32 can hold


class Unreadable(ValueError):
    """A tensor that contradicts itself."""


def decode(data: bytes, broken: Callable[[], None]) -> tuple[Array, bool]:
    """The array, and whether it may be less exact than what was logged.

    MindSpore writes elements of every type as float32; the type only says what they were.
    """
    dims, kind, raw = list[int](), 0, b""
    parts: list[Array] = []
    for number, value in fields(data, broken):
        if number == _DIMS:
            dims += integers(value)
        elif number == _TYPE and isinstance(value, int):
            kind = value
        elif number == _RAW and isinstance(value, bytes):
            raw = value
        elif number in _FIXED and isinstance(value, bytes):
            size = np.dtype(_FIXED[number]).itemsize
            parts.append(np.frombuffer(value[: len(value) // size * size], _FIXED[number]))
        elif number in (_INTS, _LONGS, _ULONGS):
            parts.append(np.array(integers(value), dtype=np.int64))
    array = _from_raw(raw, kind) if raw else _joined(parts)
    written = np.dtype(TYPES.get(kind, "<f4"))
    is_rounded = array.dtype == np.float32 and written.str[1:] not in _EXACT
    return _shaped(array, dims), is_rounded


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.float32), *parts])


def _from_raw(raw: bytes, kind: int) -> Array:
    dtype = np.dtype(TYPES.get(kind, "u1"))
    if len(raw) % dtype.itemsize:
        raise Unreadable("the bytes of a tensor are not whole elements")
    return np.frombuffer(raw, dtype)


def integers(value: int | bytes) -> list[int]:
    """One, or several packed."""
    if isinstance(value, int):
        return [signed(value)]
    at, found = 0, []
    while at < len(value):
        one, at = varint(value, at)
        found.append(signed(one))
    return found


def _shaped(array: Array, dims: list[int]) -> Array:
    count = 1
    for size in dims:
        count *= size
    if count != len(array) or min(dims, default=0) < 0 or len(dims) > 32:
        if not dims and len(array) <= 1:
            return array.reshape(array.shape)
        raise Unreadable(f"a tensor has {len(array):,} elements, and its shape says otherwise")
    return array.reshape(dims)


def safely(data: bytes, broken: Callable[[], None]) -> tuple[Array, bool]:
    """The same; whatever is wrong is Unreadable."""
    try:
        return decode(data, broken)
    except Broken:
        raise Unreadable("a tensor is damaged") from None
