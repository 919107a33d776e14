"""The bytes of a file, plain or packed (gzip, zstd), a block at a time.

A packed file that was cut or damaged gives everything before the damage. Blocks are small whatever
the file claims, so that a file of zeros that unpacks a thousandfold costs time and no memory.
"""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from strobe.errors import UnreadableTrace

_READ_BYTES = 256 << 10
_INFLATE_BYTES = 64 << 10  # as much as damage can take with it
_ZSTD_READ_BYTES = 128  # each three of them may stand for 128 KiB
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"

Say = Callable[[str], None]


def blocks(path: Path, say: Say) -> Iterator[bytes]:
    """Raises UnreadableTrace where the file cannot be opened or read."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_ZSTD))
            rest = iter(lambda: file.read(_READ_BYTES), b"")
            packed = _chain(head, rest)
            if head.startswith(_GZIP):
                yield from _gunzipped(packed, say)
            elif head == _ZSTD:
                yield from _unzstded(packed, say)
            else:
                yield from packed
    except OSError as error:
        raise UnreadableTrace(
            f"this file cannot be read: {error.strerror or error}", where=str(path)
        ) from error


def beginning(path: Path, size: int) -> bytes:
    """The first bytes of a file, unpacked; damage further down is not looked for."""
    found = b""
    for block in blocks(path, lambda _: None):
        found += block
        if len(found) >= size:
            break
    return found[:size]


def _gunzipped(packed: Iterator[bytes], say: Say) -> Iterator[bytes]:
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for block in packed:
            while block:
                if inflate.eof:  # another gzip member follows
                    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
                yield inflate.decompress(block, _INFLATE_BYTES)
                block = inflate.unconsumed_tail or inflate.unused_data.lstrip(b"\0")
        yield inflate.flush()
    except zlib.error as error:
        say(f"the compressed data is damaged ({error}): everything after it is lost")
        return
    if not inflate.eof:
        say("the compressed file was cut short: its end is missing")


def _unzstded(packed: Iterator[bytes], say: Say) -> Iterator[bytes]:
    import zstandard

    inflate = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
    try:
        for block in packed:
            for start in range(0, len(block), _ZSTD_READ_BYTES):
                piece = block[start : start + _ZSTD_READ_BYTES]
                while piece:
                    if inflate.eof:  # another frame follows
                        inflate = zstandard.ZstdDecompressor().decompressobj()
                    yield inflate.decompress(piece)
                    piece = inflate.unused_data
    except zstandard.ZstdError as error:
        say(f"the compressed data is damaged ({error}): everything after it is lost")
        return
    if not inflate.eof:
        say("the compressed file was cut short: its end is missing")


def _chain(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from rest
