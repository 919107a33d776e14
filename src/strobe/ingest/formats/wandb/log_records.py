"""The records of a .wandb file, a piece of it at a time.

The file is a log of blocks of 32 KiB. A block has chunks: a checksum, a length, a type, and as many
bytes. A record is one chunk, or several in a row. W&B's checksum is the CRC-32 of zlib over type
and bytes. A chunk that does not match it costs its record, and a length that leads nowhere the rest
of the block.
"""

import itertools
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.xplane.wire import Block
from strobe.ingest.trace import progress
from strobe.ingest.trace.codes import Array

MAGIC = b":W&B"
_FILE_HEADER = 7  # magic, and two numbers that are the same in every version
_BLOCK_BYTES = 32 << 10
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_PIECE_BLOCKS = 128
_LONGEST_RECORD = 1 << 30

Say = Callable[[str, int], None]


class Piece(NamedTuple):
    """Whole records: where each begins and ends in the block."""

    block: Block
    starts: Array
    ends: Array


def is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def pieces(path: Path, say: Say, blocks: int = _PIECE_BLOCKS) -> Iterator[Piece]:
    """All sound records of a file; what is wrong with the others is said."""
    try:
        with path.open("rb") as file:
            yield from _Reader(file, say).pieces(blocks)
    except OSError as error:
        raise UnreadableTrace(
            f"this file cannot be read: {error.strerror or error}", where=str(path)
        ) from error


class _Reader:
    def __init__(self, file: BinaryIO, say: Say) -> None:
        self._file, self._say = file, say
        self._size = os.fstat(file.fileno()).st_size
        self._records: list[bytes] = []  # of this piece
        self._parts: list[bytes] | None = None  # of a record that is not complete
        self._part_bytes = 0
        self._is_cut = False
        self._sound_end = _FILE_HEADER  # up to here everything is accounted for

    def pieces(self, blocks: int) -> Iterator[Piece]:
        at = 0
        while at < self._size and not self._is_cut:
            self._file.seek(at)
            data = self._file.read(min(blocks * _BLOCK_BYTES, self._size - at))
            if not data:
                break
            for start in range(0, len(data), _BLOCK_BYTES):
                self._take(data[start : start + _BLOCK_BYTES], at + start)
            progress.report(len(data))
            at += len(data)
            if self._records:
                yield self._piece()
        self._finish()

    def _piece(self) -> Piece:
        ends = np.array(list(itertools.accumulate(map(len, self._records))), dtype=np.int64)
        starts = np.append(0, ends[:-1])
        block, self._records = Block(b"".join(self._records)), []
        return Piece(block, starts, ends)

    def _take(self, data: bytes, place: int) -> None:
        """The chunks of one block."""
        at = 0 if place else _FILE_HEADER
        while len(data) - at >= _CHUNK.size:
            crc, size, kind = _CHUNK.unpack_from(data, at)
            end = at + _CHUNK.size + size
            if not (crc or size or kind):  # nothing was written to the rest of the block
                if any(data[at:]):
                    self._lose("the rest of a block of records is damaged: it was left out")
                return
            if end > len(data) and place + len(data) == self._size and len(data) < _BLOCK_BYTES:
                self._is_cut = True
                return
            if zlib.crc32(data[at + 6 : end]) != crc or end > len(data):
                self._lose("records whose content does not match its checksum were left out")
                if not _is_sound(data, end):
                    return
            else:
                self._add(kind, data[at + _CHUNK.size : end])
            at = end
            if self._parts is None:
                self._sound_end = place + at
        # A block ends with zeros where no chunk has room.
        is_last = place + len(data) == self._size and len(data) < _BLOCK_BYTES
        self._is_cut |= is_last and any(data[at:])

    def _add(self, kind: int, content: bytes) -> None:
        if kind in (_FULL, _FIRST) and self._parts is not None:
            self._lose("records that were begun and not ended were left out")
        if kind == _FULL:
            self._records.append(content)
        elif kind == _FIRST:
            self._parts, self._part_bytes = [content], len(content)
        elif kind in (_MIDDLE, _LAST):
            self._continue(kind, content)
        else:
            self._lose("records of an unknown type were left out")

    def _continue(self, kind: int, content: bytes) -> None:
        if self._parts is None:
            return  # its beginning is lost, and was counted
        self._parts.append(content)
        self._part_bytes += len(content)
        if self._part_bytes > _LONGEST_RECORD:
            self._lose("records of more than 1 GiB were left out")
        elif kind == _LAST:
            self._records.append(b"".join(self._parts))
            self._parts = None

    def _lose(self, what: str) -> None:
        self._parts = None
        self._say(what, 1)

    def _finish(self) -> None:
        if self._is_cut or self._parts is not None:
            rest = self._size - self._sound_end
            self._say(
                f"the file ends within a record: {rest:,} bytes from byte {self._sound_end:,} on"
                " were not read", 1,
            )  # fmt: skip


def _is_sound(data: bytes, at: int) -> bool:
    """Whether a chunk begins here, after one that is damaged; or the block ends."""
    if len(data) - at < _CHUNK.size:
        return at <= len(data)
    crc, size, _ = _CHUNK.unpack_from(data, at)
    end = at + _CHUNK.size + size
    return end <= len(data) and zlib.crc32(data[at + 6 : end]) == int(crc)
