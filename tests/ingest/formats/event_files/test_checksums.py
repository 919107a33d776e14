import numpy as np

from strobe.ingest.formats.event_files import checksums
from strobe.ingest.formats.xplane.wire import Block


def one_by_one(data: bytes) -> int:
    """The definition, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_published_values():
    """RFC 3720, B.4, and the check value of CRC-32C."""
    data = b"123456789" + bytes(32) + b"\xff" * 32 + bytes(range(32))
    starts, ends = np.array([0, 9, 41, 73]), np.array([9, 41, 73, 105])
    assert checksums.crc32c(Block(data), starts, ends).tolist() == [
        0xE3069283, 0x8A9136AA, 0x62A8AB43, 0x46DD794E
    ]  # fmt: skip


def test_stretches_of_every_length_together():
    data = np.random.default_rng(0).bytes(9000)
    starts = np.array([*range(70), 3, 5, 7, 11, 0])
    ends = np.array([*range(0, 140, 2), 3 + 1024, 5 + 1025, 7 + 4096, 8999, 9000])
    found = checksums.crc32c(Block(data), starts, ends).tolist()
    assert found == [
        one_by_one(data[start:end])
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def test_a_changed_bit_changes_the_checksum():
    data = bytearray(np.random.default_rng(1).bytes(3000))
    whole = np.array([0]), np.array([3000])
    before = checksums.masked(Block(bytes(data)), *whole)[0]
    data[2999] ^= 0x40
    assert checksums.masked(Block(bytes(data)), *whole)[0] != before
