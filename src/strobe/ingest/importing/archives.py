"""Unpack archives (zip, tar, compressed tar) into a folder, safely and within limits.

Only regular files are written, each inside the folder whatever its name says. Sizes are counted
while unpacking, and those that the archive states are not trusted.
"""

import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed

_COPY_BYTES = 1 << 20
_MOST_FILES = 100_000
_LONGEST_NAME = 255
_HEADER_TYPES = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
_LARGEST_HEADER = 1 << 20  # of a tar member: tarfile reads it into memory completely
# JSON compresses 10 to 30 times, rarely 100 times; the limit of deflate is 1032.
_LARGEST_RATIO = 300
_ALWAYS_ALLOWED = 1 << 30
_LEAVE_FREE = 1 << 30

# Everything that zipfile and tarfile were observed to raise for damaged files.
_DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, struct.error, EOFError, NotImplementedError,
    RuntimeError, ValueError, IndexError, OverflowError,
)  # fmt: skip


def unpack(path: Path, folder: Path) -> Counter[str]:
    """Write the files of an archive to a folder; returns what was left out, and how often."""
    folder.mkdir(parents=True)
    writer = _Writer(path, folder)
    with path.open("rb") as file:
        is_zip = file.read(4) in compressed.ZIP
    try:
        for name, member in _zip_members(path, writer) if is_zip else _tar_members(path, writer):
            writer.write(name, member)
    except _DAMAGE as error:
        writer.left_out[f"the archive is damaged, what follows is lost: {error}"] += 1
        if not writer.files:
            raise UnreadableTrace.of(
                "errors/traces.bad-archive", where=str(path), reason=error
            ) from error
    except OSError as error:
        raise UnreadableTrace.of(
            "errors/traces.cannot-unpack", where=str(path), reason=error.strerror or error
        ) from error
    return writer.left_out


class _Writer:
    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive, self.folder = archive, folder
        self.left_out: Counter[str] = Counter()
        self.files = self.bytes = 0
        self.limit = max(_ALWAYS_ALLOWED, archive.stat().st_size * _LARGEST_RATIO)

    def write(self, name: str, member: IO[bytes]) -> None:
        path = self._place(name)
        if path is None:
            self.left_out["a member's name leads out of the archive, or is no name"] += 1
            return
        self.files += 1
        if self.files > _MOST_FILES:
            raise self._too_much("archive-files", most=f"{_MOST_FILES:,}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            out = path.open("xb")
        except (FileExistsError, NotADirectoryError):
            self.left_out["a member has the name of another one"] += 1
            return
        with out:
            self._copy(name, member, out)

    def refuse_larger(self, size: int) -> None:
        """By the sizes that the archive states, before anything is written."""
        if size > self.limit:
            raise self._too_much("archive-ratio", size=f"{size:,}")
        free = shutil.disk_usage(self.folder).free
        if size > free - _LEAVE_FREE:
            raise UnreadableTrace.of(
                "errors/traces.no-room-to-unpack",
                where=str(self.archive),
                size=f"{size:,}",
                free=f"{free:,}",
            )

    def _copy(self, name: str, member: IO[bytes], out: IO[bytes]) -> None:
        try:
            while block := member.read(_COPY_BYTES):
                self.bytes += len(block)
                self.refuse_larger_so_far()
                out.write(block)
        except _DAMAGE as error:
            self.left_out[f"{name[:80]} is damaged, its end is lost: {error}"] += 1

    def refuse_larger_so_far(self) -> None:
        if self.bytes > self.limit:
            raise self._too_much("archive-ratio-so-far")
        if self.bytes % (64 << 20) < _COPY_BYTES:  # not every time: checking is not free
            self.refuse_larger(_COPY_BYTES)

    def _place(self, name: str) -> Path | None:
        parts = PurePosixPath(name.replace("\\", "/")).parts
        is_safe = bool(parts) and not name.startswith(("/", "\\")) and ":" not in parts[0]
        for part in parts:
            is_safe &= part != ".." and "\0" not in part
            is_safe &= len(part.encode("utf-8", "replace")) <= _LONGEST_NAME
        path = self.folder.joinpath(*parts) if is_safe else None
        if path is None or len(os.fsencode(path)) > 4000:
            return None
        return path

    def _too_much(self, id: str, **values: str) -> UnreadableTrace:
        return UnreadableTrace.of(
            f"errors/traces.{id}", where=str(self.archive), ratio=_LARGEST_RATIO, **values
        )


def _zip_members(path: Path, writer: _Writer) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        writer.refuse_larger(sum(member.file_size for member in members))
        for member in members:
            mode = member.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                writer.left_out["a member is a link or a device"] += 1
            elif member.flag_bits & 1:
                writer.left_out["a member is encrypted"] += 1
            else:
                try:
                    with archive.open(member) as file:
                        yield member.filename, file
                except _DAMAGE as error:
                    writer.left_out[f"a member cannot be read: {error}"] += 1


def _tar_members(path: Path, writer: _Writer) -> Iterator[tuple[str, IO[bytes]]]:
    def say(what: str) -> None:
        writer.left_out[what] += 1

    stream: Any = _Stream(compressed.blocks(path, say))
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member, errorlevel=1) as archive:
        for member in archive:
            if member.isdir():
                continue
            file = archive.extractfile(member) if member.isreg() and not member.sparse else None
            if file is None:
                say("a member is a link, a device or has holes")
            else:
                yield member.name, file


class _Member(tarfile.TarInfo):
    """Refuses headers that tarfile would read into memory regardless of their stated size."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type in _HEADER_TYPES and self.size > _LARGEST_HEADER:
            raise tarfile.ReadError("a header of a member is too long")
        return super()._proc_member(archive)  # type: ignore[misc]


class _Stream:
    """Blocks as a file that can be read once."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            block = next(self._blocks, None)
            if block is None:
                break
            self._rest += block
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
