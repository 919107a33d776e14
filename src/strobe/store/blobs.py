"""Files that a table refers to: written by readers while tables are built, found by their path."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from strobe.model.blobs import blob_name, write_blob
from strobe.model.metric_tables import BLOBS_DIR
from strobe.store.run import TABLES_DIR, Run

_folder: ContextVar[Path | None] = ContextVar("blobs", default=None)


@contextlib.contextmanager
def blobs_in(tables: Path) -> Iterator[None]:
    """Blobs stored inside go to this folder of a rank's tables."""
    token = _folder.set(tables / BLOBS_DIR)
    try:
        yield
    finally:
        _folder.reset(token)


def store_blob(data: bytes, suffix: str) -> str:
    """Store a file with the tables that are being built; return its path for their `file` column.

    Where no tables are built (a trace is only looked at), nothing is written.
    """
    folder = _folder.get()
    name = blob_name(data, suffix) if folder is None else write_blob(folder, data, suffix)
    return f"{TABLES_DIR}/{BLOBS_DIR}/{name}"


def find_blob(run: Run, rank: int, file: str) -> Path | None:
    """Where the file of a row is: in the run, or with its tables if those are in the cache.

    None if it is missing, or if the path leads out of the rank's folder.
    """
    name = f"rank_{rank}"
    homes = [run.path / name, *(home for home in run.rank_dirs if home.name == name)]
    for home in homes:
        path = home / file
        if path.is_file() and path.resolve().is_relative_to(home.resolve()):
            return path
    return None
