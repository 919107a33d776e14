"""The bytes of a file, plain or packed (gzip, zstd), a block at a time.

A packed file that was cut or damaged gives everything before the damage. Blocks are small whatever
the file claims, so that a file of zeros that unpacks a thousandfold costs time and no memory.
Text in UTF-16, as Windows writes it, comes out in UTF-8, and without a byte-order mark.
"""

import codecs
import itertools
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from strobe.errors import UnreadableTrace
from strobe.ingest.trace import progress

_READ_BYTES = 256 << 10
_INFLATE_BYTES = 64 << 10  # as much as damage can take with it
_ZSTD_READ_BYTES = 128  # each three of them may stand for 128 KiB
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# JSON begins with one of two characters; with a byte-order mark before it or not.
_UTF_16 = {
    mark + first.encode(name): name
    for name, mark in (("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE))
    for mark in (mark, b"")
    for first in "{["
}
_ENOUGH_TO_TELL = 4

RATIO = 12  # traces pack about so well

Say = Callable[[str], None]


def blocks(path: Path, say: Say) -> Iterator[bytes]:
    """Raises UnreadableTrace where the file cannot be opened or read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            raise UnreadableTrace.of(
                "errors/traces.cannot-read-kind", where=str(path), kind=kind_of_file(path)
            )
        with path.open("rb") as file:
            yield from _as_utf8(_unpacked(_as_they_lie(file, say), say), say)
    except OSError as error:
        raise UnreadableTrace.of(
            "errors/traces.cannot-read", where=str(path), reason=error.strerror or error
        ) from error


def kind_of_file(path: Path) -> str:
    mode = path.stat().st_mode
    kinds = {"a folder": stat.S_ISDIR, "a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
    return next((kind for kind, is_it in kinds.items() if is_it(mode)), "a device")


def is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ZSTD)).startswith((_GZIP, _ZSTD))


def is_plain(path: Path) -> bool:
    """Whether the text of a file lies in it as it is: not packed, and in UTF-8 without a mark."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            head = file.read(_ENOUGH_TO_TELL)
    except OSError:
        return False
    return not head.startswith((_GZIP, _ZSTD, codecs.BOM_UTF8, *_UTF_16))


def expected_bytes(path: Path) -> int:
    """How much this file will be when it is unpacked, roughly."""
    try:
        size = path.stat().st_size
        return size * RATIO if is_packed(path) else size
    except OSError:
        return 0


def say_if_grown(file: BinaryIO, size: int, say: Say) -> None:
    grown = os.fstat(file.fileno()).st_size - size
    if grown > 0:
        say(f"the file grew by {grown:,} bytes while it was read: import it again when it is whole")


def beginning(path: Path, size: int) -> bytes:
    """The first bytes of a file, unpacked; damage further down is not looked for."""
    found = b""
    for block in blocks(path, lambda _: None):
        found += block
        if len(found) >= size:
            break
    return found[:size]


def _as_they_lie(file: BinaryIO, say: Say) -> Iterator[bytes]:
    """No further than the file went when it was opened, or a busy writer would never let us end."""
    whole = left = os.fstat(file.fileno()).st_size
    while left and (block := file.read(min(left, _READ_BYTES))):
        left -= len(block)
        progress.report(len(block))
        yield block
    say_if_grown(file, whole, say)


def _unpacked(packed: Iterator[bytes], say: Say) -> Iterator[bytes]:
    head = next(packed, b"")
    packed = itertools.chain([head], packed)
    if head.startswith(_GZIP):
        return _gunzipped(packed, say)
    return _unzstded(packed, say) if head.startswith(_ZSTD) else packed


def _as_utf8(blocks: Iterator[bytes], say: Say) -> Iterator[bytes]:
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _ENOUGH_TO_TELL:
            break
    if head.startswith(codecs.BOM_UTF8):
        head = head[len(codecs.BOM_UTF8) :]
    encoding = next((name for start, name in _UTF_16.items() if head.startswith(start)), "")
    if not encoding:
        yield head
        yield from blocks
        return
    say("the text is in UTF-16: it was read, and should be UTF-8 for other tools")
    decode = codecs.getincrementaldecoder(encoding)("replace").decode
    for block in itertools.chain([head], blocks):
        yield decode(block).lstrip("\ufeff").encode("utf-8", "replace")


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
