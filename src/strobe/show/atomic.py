"""Files and folders that are there whole or not at all: written beside, then renamed."""

import contextlib
import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

from strobe.errors import UsageError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Text in UTF-8; compressed when the name ends in .gz."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError.of(
            "errors/files.cannot-write", where=str(path), reason=error.strerror
        ) from error
    try:
        with os.fdopen(handle, "wb") as raw, _text_of(raw, path) as text:
            yield text
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError.of(
            "errors/files.cannot-finish", where=str(path), reason=error.strerror
        ) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


@contextlib.contextmanager
def _text_of(raw: io.BufferedWriter, path: Path) -> Iterator[TextIO]:
    if path.suffix != ".gz":
        with io.TextIOWrapper(raw, "utf-8", newline="\n") as text:
            yield text
        return
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=5, mtime=0) as packed:
        stream = cast(io.BufferedWriter, packed)
        with io.TextIOWrapper(stream, "utf-8", newline="\n") as text:
            yield text


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to write into, which replaces what is at the path when everything is written."""
    try:
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    except OSError as error:
        raise UsageError.of(
            "errors/files.cannot-write", where=str(path), reason=error.strerror
        ) from error
    try:
        yield temporary
        os.chmod(temporary, 0o755)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError.of(
            "errors/files.cannot-finish-folder", where=str(path), reason=error.strerror
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
