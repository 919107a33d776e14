"""The folder of a run while it is read: one that is removed meanwhile must not come back.

Whoever removes a run does not ask who reads it. So what readers keep in a run goes into folders
that are there, or into one made just below them, never with its parents. It is kept only if what it
was made of is still there. And what fails because the run is gone is told as that: `NoSuchRun`.
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from strobe.errors import NoSuchRun, StrobeError
from strobe.model.manifest import MANIFEST_FILE

RAW_DIR = "raw"
# What the system answers where a run can be read, but not written.
CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
_RANK = re.compile(r"rank_(\d+)\Z")


def is_run(folder: Path) -> bool:
    """Whether it holds a manifest, or a rank that recorded something."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return False
    if any(entry.name == MANIFEST_FILE for entry in entries):
        return True
    return any(
        _RANK.match(entry.name) and os.path.isdir(os.path.join(entry.path, RAW_DIR))
        for entry in entries
    )


def rank_dirs(run: Path) -> dict[int, Path]:
    """The raw directory of each rank, by number."""
    found = {
        int(match.group(1)): path / RAW_DIR
        for path in run.iterdir()
        if (match := _RANK.match(path.name)) and (path / RAW_DIR).is_dir()
    }
    return dict(sorted(found.items()))


def folder_in(parent: Path, name: str, *, is_new: bool = False) -> Path:
    """A folder in one that is there. Raises NoSuchRun: what is gone is not made anew."""
    folder = parent / name
    try:
        folder.mkdir(exist_ok=not is_new)
    except FileNotFoundError as error:
        raise removed(parent) from error
    return folder


def refuse_removed(*parts: Path) -> None:
    """Raises NoSuchRun if any part of a run, which was there, is not.

    A folder in which we write cannot be removed at once: of the run, it may be all that is left.
    """
    for part in parts:
        if not part.exists():
            raise removed(part)


@contextlib.contextmanager
def while_there(*runs: Path) -> Iterator[None]:
    """Whatever fails inside because one of these runs was removed raises NoSuchRun."""
    try:
        yield
    except NoSuchRun:
        raise
    except Exception as error:
        gone = next((run for run in runs if _explains(run, error)), None)
        if gone is None:
            raise
        raise removed(gone) from error


def _explains(run: Path, error: Exception) -> bool:
    """Whether the run is gone. Of a folder that is there and holds none, we may have said more."""
    try:
        os.scandir(run).close()
    except OSError as why:  # one that may not be looked into is not gone
        return isinstance(why, FileNotFoundError)
    return not is_run(run) and not isinstance(error, StrobeError)


def removed(part: Path) -> NoSuchRun:
    return NoSuchRun.of("errors/run.removed", where=str(part))
