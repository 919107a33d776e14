"""Write TensorBoard's event files of scalars: just enough to have a run that logged some."""

import struct
from pathlib import Path

WALL_TIME_S = 1_700_000_000


def write_scalars(path: Path, values: dict[str, list[float]], first_step: int = 0) -> None:
    """A value of each tag in each step, a second apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    steps = max(len(of_tag) for of_tag in values.values())
    events = [_double(1, WALL_TIME_S) + _bytes(3, b"brain.Event:2")]
    for step in range(steps):
        found = [(tag, of_tag[step]) for tag, of_tag in values.items() if step < len(of_tag)]
        summary = b"".join(_bytes(1, _bytes(1, tag.encode()) + _float(2, v)) for tag, v in found)
        head = _double(1, WALL_TIME_S + step + 1) + b"\x10" + _varint(first_step + step)
        events.append(head + _bytes(5, summary))
    path.write_bytes(b"".join(map(_record, events)))


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    """CRC-32C bit by bit, masked as records contain it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _double(field: int, value: float) -> bytes:
    return bytes((field << 3 | 1,)) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return bytes((field << 3 | 5,)) + struct.pack("<f", value)


def _bytes(field: int, value: bytes) -> bytes:
    return bytes((field << 3 | 2,)) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))
