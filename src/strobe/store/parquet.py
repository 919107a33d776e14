"""A Parquet file of a declared table, from arrays.

Written here and not by DuckDB, because loading that takes longer than reading a small trace. Its
encodings are those that arrays become without a loop over their values: texts as numbers into a
dictionary, integers as differences from one to the next, both in whole bytes, which zstd packs.
Format: https://github.com/apache/parquet-format
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import zstandard

from strobe.model.schema import Column, ColumnType, Table
from strobe.store import thrift
from strobe.store.strings import Strings
from strobe.store.thrift import Value, i32, i64
from strobe.version import __version__

Array = np.ndarray[Any, np.dtype[Any]]

ROW_GROUP_ROWS = 122_880
_MAGIC = b"PAR1"
_PHYSICAL: dict[ColumnType, int] = {"bool": 0, "i64": 2, "f64": 5, "str": 6}
_PLAIN, _RLE, _DELTA, _DICTIONARY = 0, 3, 5, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_STORED, _ZSTD = 0, 6
_NULLABLE = 1
_UTF8 = 0
# Below this a page is not worth a call of zstd.
_WORTH_PACKING = 512
_LEVEL = 1
# A block of differences has one least of them, each part of it a width.
_BLOCK, _PARTS = 1024, 4
_LONGEST_BOUND = 256  # of a text that tells what lies in a row group


class _Values(NamedTuple):
    """The values of a column in a row group, encoded; nulls are not among them."""

    encoding: int
    data: bytes
    least: bytes | None = None  # None: not told
    most: bytes | None = None
    texts: list[bytes] = []  # the dictionary

    def bounds(self) -> dict[int, Value]:
        if self.least is None or self.most is None:
            return {}
        return {5: thrift.binary(self.most), 6: thrift.binary(self.least)}


class _Chunk(NamedTuple):
    meta: Value
    unpacked_bytes: int
    packed_bytes: int


def write(path: Path, table: Table, columns: Mapping[str, Any], count: int) -> None:
    """`count` rows. A column is an array, Nullable, masked, or Strings; one left out is null."""
    pack = zstandard.ZstdCompressor(level=_LEVEL).compress
    groups = []
    with path.open("wb") as file:
        file.write(_MAGIC)
        for start in range(0, count, ROW_GROUP_ROWS):
            rows = slice(start, min(start + ROW_GROUP_ROWS, count))
            chunks = [
                _written(file, column, columns.get(column.name), rows, pack)
                for column in table.columns
            ]
            groups.append(_group(chunks, rows.stop - rows.start))
        footer = _footer(table, groups, count)
        file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)


def rows_in(path: Path) -> int:
    """How many rows a file has, by what it says of itself; whoever wrote it."""
    with path.open("rb") as file:
        file.seek(-8, 2)
        (length,) = struct.unpack("<I4x", file.read(8))
        file.seek(-8 - length, 2)
        return thrift.integer_field(file.read(length), 3)


def _written(
    file: IO[bytes], column: Column, given: Any, rows: slice, pack: Callable[[bytes], bytes]
) -> _Chunk:
    """One column of a row group: its dictionary if it has one, and one page of values."""
    count = rows.stop - rows.start
    is_valid, values = _encoded(column.type, given, rows)
    nulls = 0 if is_valid is None else count - int(np.count_nonzero(is_valid))
    body = _levels(is_valid, count) + values.data
    dictionary = b"".join([struct.pack("<I", len(text)) + text for text in values.texts])
    is_packed = len(body) + len(dictionary) >= _WORTH_PACKING
    pages = _Pages(file, pack if is_packed else bytes)
    place_of_dictionary = {}
    if values.encoding == _DICTIONARY:
        header = thrift.struct({1: i32(len(values.texts)), 2: i32(_PLAIN)})
        place_of_dictionary[11] = i64(pages.write(_DICTIONARY_PAGE, {7: header}, dictionary))
    header = thrift.struct({1: i32(count), 2: i32(values.encoding), 3: i32(_RLE), 4: i32(_RLE)})
    place = pages.write(_DATA_PAGE, {5: header}, body)
    meta = thrift.struct({
        1: i32(_PHYSICAL[column.type]),
        2: thrift.listed([i32(encoding) for encoding in (values.encoding, _RLE, _PLAIN)]),
        3: thrift.listed([thrift.binary(column.name.encode())]),
        4: i32(_ZSTD if is_packed else _STORED),
        5: i64(count), 6: i64(pages.unpacked_bytes), 7: i64(pages.packed_bytes()),
        9: i64(place), **place_of_dictionary,
        12: thrift.struct({3: i64(nulls), **values.bounds()}),
    })  # fmt: skip
    chunk = thrift.struct({2: i64(pages.start), 3: meta})
    return _Chunk(chunk, pages.unpacked_bytes, pages.packed_bytes())


class _Pages:
    def __init__(self, file: IO[bytes], pack: Callable[[bytes], bytes]) -> None:
        self._file, self._pack = file, pack
        self.start, self.unpacked_bytes = file.tell(), 0

    def write(self, kind: int, header: dict[int, Value], body: bytes) -> int:
        """Where it lies."""
        place, packed = self._file.tell(), self._pack(body)
        sizes = {2: i32(len(body)), 3: i32(len(packed))}
        head = thrift.struct({1: i32(kind), **sizes, **header}).data
        self._file.write(head + packed)
        self.unpacked_bytes += len(head) + len(body)
        return place

    def packed_bytes(self) -> int:
        return self._file.tell() - self.start


def _encoded(kind: ColumnType, given: Any, rows: slice) -> tuple[Array | None, _Values]:
    """Which rows are not null, None for all of them, and their values."""
    if given is None:
        return np.zeros(rows.stop - rows.start, dtype=np.bool_), _Values(_PLAIN, b"")
    if isinstance(given, Strings):
        codes = given.codes[rows]
        is_valid = codes >= 0
        if is_valid.all():
            return None, _texts(codes, given.values)
        return is_valid, _texts(codes[is_valid], given.values)
    part = given[rows]
    mask = getattr(part, "mask", None)
    if mask is None:
        return None, _ENCODERS[kind](part)
    if not mask.any():  # numpy's own is a single truth then
        return None, _ENCODERS[kind](part.data)
    return ~mask, _ENCODERS[kind](part.data[~mask])


def _texts(codes: Array, texts: list[str]) -> _Values:
    occurs = np.zeros(len(texts), dtype=np.bool_)
    occurs[codes] = True
    # Half of a surrogate pair cannot be written; it shows as \udc80.
    used = [
        texts[code].encode("utf-8", "backslashreplace") for code in np.flatnonzero(occurs).tolist()
    ]
    width = next(width for width in (1, 2, 4) if len(used) <= 1 << 8 * width)
    numbers = (np.cumsum(occurs) - 1).astype(f"<u{width}")[codes]
    padded = numbers.tobytes() + bytes(-len(numbers) % 8 * width)
    run = thrift.unsigned(-(-len(numbers) // 8) << 1 | 1)
    bounds = (min(used), max(used)) if used else (None, None)
    is_told = all(bound is not None and len(bound) <= _LONGEST_BOUND for bound in bounds)
    least, most = bounds if is_told else (None, None)
    return _Values(_DICTIONARY, bytes((8 * width,)) + run + padded, least, most, used)


def _integers(values: Array) -> _Values:
    if values.dtype.kind == "f":
        values = np.rint(values)
    values = values.astype("<i8")
    head = b"".join(map(thrift.unsigned, (_BLOCK, _PARTS, len(values))))
    first = thrift.zigzag(int(values[0]) if len(values) else 0)
    bounds = (values.min().tobytes(), values.max().tobytes()) if len(values) else (None, None)
    return _Values(_DELTA, b"".join((head, first, *_differences(values))), *bounds)


def _differences(values: Array) -> Iterator[bytes]:
    """Blocks: the least difference, the widths of the parts, and what each one is above the least.

    What is beyond 64 bits falls away, here and where they are added up again.
    """
    count = max(0, len(values) - 1)
    blocks = -(-count // _BLOCK)
    steps = np.diff(values)
    steps = np.concatenate((steps, np.repeat(steps[-1:], blocks * _BLOCK - count)))
    steps = steps.reshape(blocks, _BLOCK)
    least = steps.min(axis=1, initial=2**63 - 1)
    above = (steps - least[:, None]).view("<u8").reshape(blocks, _PARTS, _BLOCK // _PARTS)
    most = above.max(axis=2, initial=0)
    widths = sum((most >> np.uint64(8 * byte) > 0).astype(np.uint8) for byte in range(8))
    by_byte = above.view(np.uint8).reshape(blocks, _PARTS, _BLOCK // _PARTS, 8)
    for number, (of_block, of_parts) in enumerate(zip(least.tolist(), widths, strict=True)):
        yield thrift.zigzag(of_block) + (of_parts * 8).tobytes()
        for part, width in enumerate(of_parts.tolist()):
            yield by_byte[number, part, :, :width].tobytes()


def _numbers(values: Array) -> _Values:
    values = values.astype("<f8")
    is_told = len(values) > 0 and not np.isnan(values).any()
    bounds = (values.min().tobytes(), values.max().tobytes()) if is_told else (None, None)
    return _Values(_PLAIN, values.tobytes(), *bounds)


def _truths(values: Array) -> _Values:
    values = values.astype(np.bool_)
    bounds = (values.min().tobytes(), values.max().tobytes()) if len(values) else (None, None)
    return _Values(_PLAIN, np.packbits(values, bitorder="little").tobytes(), *bounds)


_ENCODERS = {"i64": _integers, "f64": _numbers, "bool": _truths}


def _levels(is_valid: Array | None, count: int) -> bytes:
    """Which rows have a value: one run of ones, or a bit for each."""
    if is_valid is None:
        run = thrift.unsigned(count << 1) + b"\1"
    else:
        bits = np.packbits(is_valid, bitorder="little").tobytes()
        run = thrift.unsigned(len(bits) << 1 | 1) + bits
    return struct.pack("<I", len(run)) + run


def _group(chunks: list[_Chunk], rows: int) -> Value:
    return thrift.struct({
        1: thrift.listed([chunk.meta for chunk in chunks]),
        2: i64(sum(chunk.unpacked_bytes for chunk in chunks)),
        3: i64(rows),
        6: i64(sum(chunk.packed_bytes for chunk in chunks)),
    })  # fmt: skip


def _footer(table: Table, groups: list[Value], count: int) -> bytes:
    schema = [thrift.struct({4: thrift.binary(b"schema"), 5: i32(len(table.columns))})]
    for column in table.columns:
        fields = {1: i32(_PHYSICAL[column.type]), 3: i32(_NULLABLE)}
        fields[4] = thrift.binary(column.name.encode())
        if column.type == "str":
            fields[6] = i32(_UTF8)
        schema.append(thrift.struct(fields))
    in_order_of_type = thrift.struct({1: thrift.struct({})})
    return thrift.struct({
        1: i32(2),
        2: thrift.listed(schema),
        3: i64(count),
        4: thrift.listed(groups),
        6: thrift.binary(f"strobe version {__version__}".encode()),
        7: thrift.listed([in_order_of_type] * len(table.columns)),
    }).data  # fmt: skip
