"""The records of an event file, a piece of it at a time.

A record is its length, the length's checksum, as many bytes, and their checksum. A record whose
bytes do not match their checksum is left out; behind a damaged length nothing can be found.
"""

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.event_files.checksums import masked
from strobe.ingest.formats.xplane.wire import Block
from strobe.ingest.trace import progress
from strobe.ingest.trace.codes import Array

_PIECE_BYTES = 4 << 20
_HEADER, _FRAME = 12, 16
_WALL_TIME = 0x09  # the tag of the first field of every event
_LONGEST_RECORD = 1 << 31  # where protobuf ends

Say = Callable[[str, int], None]


class Piece(NamedTuple):
    """Whole records: where the message of each begins and ends in the block."""

    block: Block
    starts: Array
    ends: Array
    first_record: int  # the number of the first one in the file


def pieces(path: Path, say: Say) -> Iterator[Piece]:
    """All sound records of a file; what is wrong with the others is said."""
    try:
        with path.open("rb") as file:
            yield from _Reader(file, say).pieces()
    except OSError as error:
        raise UnreadableTrace.of(
            "errors/traces.cannot-read", where=str(path), reason=error.strerror or error
        ) from error


def first_message(path: Path) -> bytes | None:
    """The message of the first record; None if this is not an event file."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
            if len(header) < _HEADER:
                return None
            block = Block(header)
            (length,) = struct.unpack_from("<Q", header)
            if not _have_checksums(block, *np.array([[0], [8]]))[0]:
                return None
            return file.read(min(length, _PIECE_BYTES))
    except OSError:
        return None


def began(path: Path) -> int | None:
    """The time of the first record, in nanoseconds since 1970."""
    message = first_message(path) or b""
    if len(message) < 9 or message[0] != _WALL_TIME:
        return None
    (seconds,) = struct.unpack_from("<d", message, 1)
    return int(seconds * 1e9) if 0 < seconds < 1 << 33 else None


class _Reader:
    def __init__(self, file: BinaryIO, say: Say) -> None:
        self._file, self._say = file, say
        self._size = os.fstat(file.fileno()).st_size
        self._records = 0

    def pieces(self) -> Iterator[Piece]:
        at = 0
        while at < self._size:
            data = self._read(at, self._piece_bytes(at))
            starts, after = _walked(data)
            block = Block(data)
            good = _good_headers(block, starts)
            starts, is_damaged = starts[:good], good < len(starts)
            if len(starts):
                progress.report(after)
                yield self._checked(block, starts)
            if is_damaged or not len(starts):
                at += int(starts[-1] + _lengths(block, starts[-1:])[0]) + _FRAME if good else 0
                self._say_why_it_ends(at)
                return
            at += after

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(min(size, self._size - at))

    def _piece_bytes(self, at: int) -> int:
        """Large enough for the record that begins here."""
        header = self._read(at, 8)
        length = struct.unpack("<Q", header)[0] if len(header) == 8 else 0
        is_whole = length <= min(self._size - at - _FRAME, _LONGEST_RECORD)
        return max(_PIECE_BYTES, length + _FRAME) if is_whole else _PIECE_BYTES

    def _checked(self, block: Block, headers: Array) -> Piece:
        starts = headers + _HEADER
        ends = starts + _lengths(block, headers)
        is_sound = _have_checksums(block, starts, ends)
        first, self._records = self._records, self._records + len(headers)
        damaged = int((~is_sound).sum())
        if damaged:
            self._say("records whose content does not match its checksum were left out", damaged)
        return Piece(block, starts[is_sound], ends[is_sound], first)

    def _say_why_it_ends(self, at: int) -> None:
        rest = self._size - at
        header = self._read(at, _HEADER)
        if not any(header) and not any(map(any, iter(lambda: self._file.read(1 << 20), b""))):
            self._say(f"the last {rest:,} bytes are zeros: nothing was written there", 1)
            return
        is_cut = len(header) < _HEADER or _good_headers(Block(header), np.zeros(1, np.int64))
        why = "the file ends within a record" if is_cut else "the length of a record is damaged"
        self._say(
            f"{why}: {rest:,} bytes from byte {at:,} on were not read (after {self._records:,}"
            " records)", 1,
        )  # fmt: skip


def _walked(data: bytes) -> tuple[Array, int]:
    """Where the whole records of a piece begin, by their lengths, and where the last one ends."""
    starts: list[int] = []
    append, unpack = starts.append, struct.Struct("<Q").unpack_from
    at, last = 0, len(data) - _FRAME
    while at <= last:
        end = at + unpack(data, at)[0] + _FRAME
        if end > len(data):
            break
        append(at)
        at = end
    return np.array(starts, dtype=np.int64), at


def _lengths(block: Block, headers: Array) -> Array:
    return block.words[headers].astype(np.int64)


def _good_headers(block: Block, headers: Array) -> int:
    """How many lengths are sound before the first that is not."""
    is_sound = _have_checksums(block, headers, headers + 8)
    return len(headers) if is_sound.all() else int(np.argmin(is_sound))


def _have_checksums(block: Block, starts: Array, ends: Array) -> Array:
    written = block.words[ends].astype(np.uint32)
    sound: Array = masked(block, starts, ends) == written
    return sound
