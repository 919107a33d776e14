"""Thrift's compact protocol, as far as what Parquet files say of themselves needs it."""

from collections.abc import Mapping
from typing import NamedTuple

_BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _STRUCT = 3, 4, 5, 6, 7, 8, 9, 12
_MANY = 15  # items of a list, whose number does not fit beside their kind


class Value(NamedTuple):
    kind: int
    data: bytes


def i32(value: int) -> Value:
    return Value(_I32, zigzag(value))


def i64(value: int) -> Value:
    return Value(_I64, zigzag(value))


def binary(value: bytes) -> Value:
    return Value(_BINARY, unsigned(len(value)) + value)


def listed(items: list[Value], kind: int = _STRUCT) -> Value:
    count, kind = len(items), items[0].kind if items else kind
    head = bytes((min(count, _MANY) << 4 | kind,)) + (unsigned(count) if count >= _MANY else b"")
    return Value(_LIST, head + b"".join([item.data for item in items]))


def struct(fields: Mapping[int, Value]) -> Value:
    """Fields by their numbers, in order."""
    out, before = [], 0
    for number, value in fields.items():
        out += [bytes((number - before << 4 | value.kind,)), value.data]
        before = number
    return Value(_STRUCT, b"".join((*out, b"\0")))


def unsigned(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Small ones of either sign are short."""
    return unsigned(value << 1 if value >= 0 else ~(value << 1))


def integer_field(data: bytes, wanted: int) -> int:
    """An integer of a struct, by its number; what comes before it is passed over."""
    return _Reader(data).integer_field(wanted)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def integer_field(self, wanted: int) -> int:
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            if number == wanted:
                return self._zigzag()
            self._pass(head & 15)
        raise ValueError(f"there is no field {wanted}")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _pass(self, kind: int) -> None:
        if kind == _STRUCT:
            while head := self._byte():
                if not head >> 4:
                    self._zigzag()
                self._pass(head & 15)
        elif kind == _LIST:
            head = self._byte()
            for _ in range(self._unsigned() if head >> 4 == _MANY else head >> 4):
                self._pass(head & 15)
        elif kind in (_I16, _I32, _I64):
            self._unsigned()
        else:  # a truth is told by its kind alone
            length = self._unsigned() if kind == _BINARY else {_BYTE: 1, _DOUBLE: 8}.get(kind, 0)
            self._at += length
