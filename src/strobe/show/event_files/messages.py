"""Protobuf messages as bytes, one field at a time."""

import struct

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """A negative number takes ten bytes, as an int64 does."""
    value &= 0xFFFFFFFFFFFFFFFF
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def key(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def integer(number: int, value: int) -> bytes:
    return key(number, _VARINT) + varint(value)


def double(number: int, value: float) -> bytes:
    return key(number, _FIXED64) + struct.pack("<d", value)


def float32(number: int, value: float) -> bytes:
    return key(number, _FIXED32) + struct.pack("<f", value)


def data(number: int, *parts: bytes) -> bytes:
    """Bytes, or a message made of these fields."""
    content = b"".join(parts)
    return key(number, _BYTES) + varint(len(content)) + content


def text(number: int, value: str) -> bytes:
    return data(number, value.encode("utf-8", "surrogateescape"))


def map_entry(number: int, name: str, value: bytes) -> bytes:
    """An entry of a map with text keys; `value` is its field 2."""
    return data(number, text(1, name), value)
