"""TensorFlow's TensorProto as arrays: of one, or the single numbers of many."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.event_files.messages import doubles, floats, scan
from strobe.ingest.formats.xplane.wire import BYTES, FIXED32, FIXED64, VARINT, Block, fields, signed
from strobe.ingest.formats.xplane.wire import varint as read_varint
from strobe.ingest.trace.codes import Array

_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8
_FLOATS, _DOUBLES, _INTS, _LONGS, _BOOLS, _HALVES, _UINTS, _ULONGS = 5, 6, 7, 10, 11, 13, 16, 17
_FLOAT, _DOUBLE, _STRING, _BFLOAT16, _HALF = 1, 2, 7, 14, 19
DTYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 8: "<c8", 9: "<i8", 10: "?",
    14: "<u2", 17: "<u2", 18: "<c16", 19: "<f2", 22: "<u4", 23: "<u8",
}  # fmt: skip
_NUMBERS = {_FLOATS: "<f4", _DOUBLES: "<f8", 9: "<f4", 12: "<f8"}  # packed
_VARINTS = (_INTS, _LONGS, _BOOLS, _HALVES, _UINTS, _ULONGS)
_MOST_VALUES = 1 << 28
_MOST_DIMENSIONS = 64


class Unreadable(ValueError):
    """A tensor that contradicts itself, or of a type that is not read."""


class Tensor(NamedTuple):
    array: Array  # of numbers; of objects (bytes) for strings
    dtype: str


def decode(data: bytes) -> Tensor:
    """Raises Unreadable."""
    dtype, shape, content = 0, list[int](), b""
    values: list[Array] = []
    strings: list[bytes] = []
    for number, value in fields(data, _refuse):
        if number == _DTYPE and isinstance(value, int):
            dtype = value
        elif isinstance(value, int):
            values += [np.array([signed(value)])] if number in _VARINTS else []
        elif number == _SHAPE:
            shape = _shape(value)
        elif number == _CONTENT:
            content = value
        elif number == _STRINGS:
            strings.append(value)
        else:
            values += _packed(number, value)
    if dtype == _STRING:
        return Tensor(_shaped(_objects(strings), shape), "bytes")
    return _numeric(dtype, shape, content, values)


def _numeric(dtype: int, shape: list[int], content: bytes, values: list[Array]) -> Tensor:
    kind = DTYPES.get(dtype)
    if kind is None:
        raise Unreadable(f"tensors of type number {dtype} are not read")
    if content:
        if len(content) % np.dtype(kind).itemsize:
            raise Unreadable("the bytes of a tensor are not whole elements")
        array: Array = np.frombuffer(content, dtype=kind)
    else:
        array = _converted(np.concatenate([np.zeros(0, np.int64), *values])
                           if len(values) != 1 else values[0], kind, dtype)  # fmt: skip
    if dtype == _BFLOAT16:  # the upper half of a float32
        wide = array.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return Tensor(_shaped(wide.view(np.float32), shape), "bfloat16")
    return Tensor(_shaped(array, shape), array.dtype.name)


def _converted(values: Array, kind: str, dtype: int) -> Array:
    if dtype in (8, 18):
        return values.view(kind)
    if dtype in (_HALF, _BFLOAT16):
        return _halves(values, dtype)
    return values.astype(kind)


def _halves(values: Array, dtype: int) -> Array:
    """Their bits as integers; torch writes the bits of a float32 in their place."""
    bits = values.astype(np.int64) & 0xFFFFFFFF
    if (bits > 0xFFFF).any():
        as_float = bits.astype(np.uint32).view(np.float32)
        if dtype == _HALF:
            return as_float.astype(np.float16)
        return (bits >> 16).astype(np.uint16)
    return bits.astype(np.uint16).view(np.float16 if dtype == _HALF else np.uint16)


def _packed(number: int, value: bytes) -> list[Array]:
    """Several numbers in one field, or a single one of fixed size."""
    if number in _NUMBERS:
        size = len(value) - len(value) % np.dtype(_NUMBERS[number]).itemsize
        return [np.frombuffer(value[:size], dtype=_NUMBERS[number])]
    if number not in _VARINTS:
        return []
    at, found = 0, []
    while at < len(value):
        one, at = read_varint(value, at)
        found.append(one)
    return [np.array(found, dtype=np.uint64).view(np.int64)]


def _shape(data: bytes) -> list[int]:
    shape = []
    for number, value in fields(data, _refuse):
        if number == 2 and isinstance(value, bytes):
            sizes = [v for n, v in fields(value, _refuse) if n == 1 and isinstance(v, int)]
            shape.append(sizes[-1] if sizes else 0)
    return shape


def _shaped(array: Array, shape: list[int]) -> Array:
    """In its shape; a single value, or the last one, fills what is missing."""
    count = 1
    for size in shape:
        count *= size
    if not 0 <= count <= _MOST_VALUES or len(shape) > _MOST_DIMENSIONS:
        raise Unreadable("the shape of a tensor is not possible")
    if len(array) > count:
        raise Unreadable("a tensor has more values than its shape")
    if len(array) < count:
        if not len(array):
            array = _objects([b""]) if array.dtype == object else np.zeros(1, array.dtype)
        array = np.concatenate([array, np.repeat(array[-1:], count - len(array))])
    return array.reshape(shape)


def _objects(strings: list[bytes]) -> Array:
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array


def _refuse() -> None:
    raise Unreadable("a tensor is damaged")


def numbers(block: Block, starts: Array, ends: Array) -> tuple[Array, Array]:
    """The single number in each of many tensors, and which of them have one."""
    found, _ = scan(block, starts, ends)
    values = np.full(len(starts), np.nan)
    is_known = np.zeros(len(starts), dtype=np.bool_)
    dtype = np.zeros(len(starts), dtype=np.int64)
    types = found.of(_DTYPE, VARINT)
    dtype[types.owner] = types.value.view(np.int64)

    def take(number: int, wire: int, wanted: int, width: int, read: Callable[..., Array]) -> None:
        rows = found.of(number, wire)
        rows = rows.rows((dtype[rows.owner] == wanted) & (rows.end - rows.start == width))
        values[rows.owner] = read(block, rows.start)
        is_known[rows.owner] = True

    for number, wire in ((_FLOATS, BYTES), (_FLOATS, FIXED32), (_CONTENT, BYTES)):
        take(number, wire, _FLOAT, 4, floats)
    for number, wire in ((_DOUBLES, BYTES), (_DOUBLES, FIXED64), (_CONTENT, BYTES)):
        take(number, wire, _DOUBLE, 8, doubles)
    return values, is_known
