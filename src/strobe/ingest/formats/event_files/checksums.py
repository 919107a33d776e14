"""CRC-32C of many stretches of a block at once, in numpy alone.

A checksum that starts from zero ignores leading zeros and is linear: long stretches are cut into
lanes, the lanes are computed side by side, and joined by advancing each over the bytes behind it.
"""

import functools

import numpy as np

from strobe.ingest.formats.xplane.wire import Block
from strobe.ingest.trace.codes import Array

_POLYNOMIAL = 0x82F63B78
_ALL_ONES = np.uint32(0xFFFFFFFF)
_MASK_DELTA = np.uint32(0xA282EAD8)
_LANE_BYTES = 1024
_LOW_HALF = np.uint32(0xFFFF)
_LENGTH_BITS = 40  # no stretch is longer than 2**40 bytes


def masked(block: Block, starts: Array, ends: Array) -> Array:
    """The checksum of each stretch in the form in which records contain it."""
    crc = crc32c(block, starts, ends)
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + _MASK_DELTA


def crc32c(block: Block, starts: Array, ends: Array) -> Array:
    """The checksum of each stretch from `starts` to `ends`."""
    sizes = ends - starts
    counts = np.maximum(1, -(-sizes // _LANE_BYTES))
    if (counts == 1).all():
        crc = _from_zero(block, starts, sizes)
    else:
        crc = _joined_lanes(block, starts, sizes, counts)
    distinct, which = np.unique(sizes, return_inverse=True)
    return crc ^ _advanced(np.full(len(distinct), _ALL_ONES), distinct)[which] ^ _ALL_ONES


def _joined_lanes(block: Block, starts: Array, sizes: Array, counts: Array) -> Array:
    """The first lane of each stretch is the one that may be shorter than the others."""
    firsts = np.cumsum(counts) - counts
    behind = np.repeat(firsts + counts, counts) - np.arange(counts.sum()) - 1  # lanes behind it
    end = np.repeat(starts + sizes, counts) - behind * _LANE_BYTES
    start = np.maximum(end - _LANE_BYTES, np.repeat(starts, counts))
    crc = _advanced(_from_zero(block, start, end - start), behind * _LANE_BYTES)
    joined: Array = np.bitwise_xor.reduceat(crc, firsts)
    return joined


def _from_zero(block: Block, starts: Array, sizes: Array) -> Array:
    """The checksums that start from zero: eight bytes of every stretch at a time."""
    low, high = _word_tables()
    words = -(-sizes // 8)
    order = np.argsort(words, kind="stable")
    starts, words = starts[order], words[order]
    first_bytes = sizes[order] - 8 * np.maximum(words - 1, 0)  # of the first word; zeros before it
    shift = (8 * (8 - first_bytes)).astype(np.uint64) & np.uint64(63)
    crc = np.zeros(len(starts), dtype=np.uint32)
    for number in range(int(words[-1]) if len(words) else 0):
        rest = slice(int(np.searchsorted(words, number, side="right")), None)
        if number:
            word = block.words[starts[rest] + first_bytes[rest] + 8 * (number - 1)]
        else:
            word = block.words[starts[rest]] << shift[rest]
        for half in (word, word >> np.uint64(32)):
            mixed = crc[rest] ^ half.astype(np.uint32)
            crc[rest] = low[mixed & _LOW_HALF] ^ high[mixed >> np.uint32(16)]
    result = np.empty_like(crc)
    result[order] = crc
    return result


def _advanced(crc: Array, zeros: Array) -> Array:
    """Each checksum after this number of zero bytes."""
    bits = int(zeros.max(initial=0)).bit_length()
    for bit, table in enumerate(_zero_tables()[:bits]):
        chosen = np.flatnonzero((zeros >> bit) & 1)
        if len(chosen):
            crc[chosen] = _looked_up(table, crc[chosen])
    return crc


def _looked_up(table: Array, crc: Array) -> Array:
    """Four bytes of each checksum through the tables of a linear function."""
    parts = [table[k][(crc >> np.uint32(8 * k)) & np.uint32(255)] for k in range(4)]
    found: Array = np.bitwise_xor.reduce(parts)
    return found


@functools.cache
def _byte_table() -> Array:
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), crc >> np.uint32(1))
    return crc


@functools.cache
def _zero_tables() -> list[Array]:
    """Of 1, 2, 4, ... zero bytes: what each byte of a checksum becomes."""
    every = np.arange(256, dtype=np.uint32)
    bytes_ = _byte_table()
    table = np.stack([every << np.uint32(8 * k) for k in range(4)])
    table = (table >> np.uint32(8)) ^ bytes_[table & 255]
    tables = [table]
    while len(tables) < _LENGTH_BITS:
        table = np.stack([_looked_up(table, row) for row in table])
        tables.append(table)
    return tables


@functools.cache
def _word_tables() -> tuple[Array, Array]:
    """What the low and the high half of a word become after its four bytes."""
    value = np.arange(1 << 16, dtype=np.uint32)
    two = _looked_up(_zero_tables()[1], value)
    return _looked_up(_zero_tables()[1], two), two
