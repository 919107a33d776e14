"""The run of a path: a run itself, or the one made of the traces there, once for each content."""

import contextlib
import glob
import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.ingest.importing.file_search import Search, contents, refuse_folder_of_runs
from strobe.ingest.importing.sources import file_and_run
from strobe.ingest.recording.rank_state import builder
from strobe.model.manifest import MANIFEST_FILE
from strobe.store.run_folder import RAW_DIR
from strobe.store.user_cache import user_cache

if TYPE_CHECKING:
    from strobe.ingest.importing.importer import Watcher

# Imports in the user's cache that were not opened for this long are deleted.
_UNUSED_S = 7 * 24 * 3600
_PREFIX = "imported-"


def run_of(path: Path, watcher: "Watcher | None" = None) -> Path:
    """The folder of the run. Traces are imported into the user's cache, or found there.

    A path that does not exist is returned as it is.
    """
    files = _traces(path)
    return _imported(path, files, watcher) if files else path


def _traces(path: Path) -> list[Path]:
    """The files to be imported: none of a run. Raises UsageError in a folder of runs."""
    if not path.is_dir():
        file, _ = file_and_run(path)
        # a database in use changes in the files beside it
        return [file, *sorted(file.parent.glob(f"{glob.escape(file.name)}-*"))] * file.exists()
    is_rank = any((path / RAW_DIR).is_dir() for path in path.iterdir())
    if is_rank or (path / MANIFEST_FILE).exists():
        return []
    found = contents(path, Search())
    refuse_folder_of_runs(path, found.runs)
    return found.files


def _imported(path: Path, files: list[Path], watcher: "Watcher | None") -> Path:
    # Not at the top: it loads every reader, and a run needs none.
    from strobe.ingest.importing.importer import import_traces

    cache = user_cache()
    run = cache / f"{_PREFIX}{_signature(path, files)}"
    if not (run / MANIFEST_FILE).exists():
        _delete_unused(cache)
        try:
            import_traces([path], run, watcher)
        except OSError:
            if not (run / MANIFEST_FILE).exists():  # else another process imported it meanwhile
                raise
    with contextlib.suppress(OSError):
        os.utime(run)
    return run


def _signature(path: Path, files: list[Path]) -> str:
    """Changes with the name, size and time of change of any of these files, and the readers."""
    digest = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape"))
    digest.update(str(builder()).encode())
    for file in files:
        with contextlib.suppress(OSError):
            status = file.stat()
            digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(
                "utf-8", "surrogateescape"))  # fmt: skip
    return digest.hexdigest()[:24]


def _delete_unused(cache: Path) -> None:
    for entry in cache.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - entry.stat().st_mtime > _UNUSED_S:
                shutil.rmtree(entry, ignore_errors=True)
