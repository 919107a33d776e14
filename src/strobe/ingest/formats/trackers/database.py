"""Read an SQLite database that a training may be writing to, and leave no trace beside it.

SQLite's own way of reading takes a lock that a writer has to wait for, and creates the files `-wal`
and `-shm`. Instead, a database without unfinished changes is opened as immutable: without locks and
without other files. If there is a journal beside it, or if it changes meanwhile, it is copied
together with its journal to a temporary folder, and SQLite puts the copy in order. A copy counts if
the database was the same before and after copying.
"""

import contextlib
import itertools
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.trace.codes import Array

MAGIC = b"SQLite format 3\0"
JOURNALS = ("-wal", "-journal")
BESIDE = (*JOURNALS, "-shm")
_HEADER_BYTES = 100
_WAL_HEADER_BYTES = 32  # has numbers that change when the log is begun again
_ATTEMPTS = 12
_PAUSE_S = 0.02
_SETTLED_S = 0.05  # times of change are no finer than this
_BATCH_ROWS = 50_000

# What sqlite3 raises for damaged files: texts of its errors may not be UTF-8, and a damaged length
# may ask for any amount of memory.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError, MemoryError)

T = TypeVar("T")
Row = tuple[Any, ...]
Say = Callable[[str, int], None]

_ALWAYS_CHANGING = "the database changed whenever it was copied: rows may be missing or doubled"


class _State(NamedTuple):
    """What changes with the content of a database."""

    database: tuple[object, ...]
    log: bytes  # the beginning of its write-ahead log
    has_journal: bool


def read(path: Path, take: Callable[[sqlite3.Connection], T], say: Say) -> T:
    """What `take` makes of the database; it may be called again if the database changes meanwhile.

    Raises UnreadableTrace.
    """
    try:
        state = _settled(path)
        if not state.has_journal:
            found = _taken(_uri(path, "mode=ro&immutable=1"), take, path)
            if _state(path) == state:
                return _or_raise(found)
        with tempfile.TemporaryDirectory(prefix="strobe-") as folder:
            copy = _copied(path, Path(folder), say)
            return _or_raise(_taken(_uri(copy, "mode=rw"), take, path))
    except OSError as error:
        raise UnreadableTrace(
            f"this database cannot be read: {error.strerror or error}", where=str(path)
        ) from error


def is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The columns of each table; views and virtual tables could do anything, and are left out."""
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    ).fetchall()
    found: dict[str, list[str]] = {}
    for (name,) in names:
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall()
        found[name] = [column for (column,) in columns]
    return found


def batches(
    connection: sqlite3.Connection, select: str, where: str, values: Sequence[object], say: Say
) -> Iterator[list[Row]]:
    """The rows of `SELECT rowid, ... FROM table`, many at a time, without their rowid.

    If a damaged page ends the search by an index, the table is gone through from its beginning, and
    gives what it has.
    """
    known: list[Array] = []
    for how in ("", "NOT INDEXED"):
        errors: list[BaseException] = []
        for rows in _fetched(connection, f"{select} {how} WHERE {where}", values, errors):
            rowids = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
            if how and known:
                is_new = ~np.isin(rowids, np.concatenate(known))
                rows = list(itertools.compress(rows, is_new.tolist()))
            known.append(rowids)
            new = [row[1:] for row in rows]
            if new:
                yield new
        if errors and how:
            say(f"the database is damaged ({errors[0]}): rows may be missing", 1)
        elif how:
            say("an index of the database is damaged: its tables were read without it", 1)
        elif not errors:
            return


def _fetched(
    connection: sqlite3.Connection, query: str, values: Sequence[object],
    errors: list[BaseException],
) -> Iterator[list[Row]]:  # fmt: skip
    """Rows, and where they end early the error."""
    rows: list[Row] = []
    try:
        cursor = connection.execute(query, values)
        while not rows or len(rows) == _BATCH_ROWS:
            rows = []
            # Unlike `fetchmany`, this gives the rows before an error.
            rows.extend(itertools.islice(cursor, _BATCH_ROWS))
            if not rows:
                return
            yield rows
    except _DAMAGE as error:
        errors.append(error)
        if rows:
            yield rows


def _taken(uri: str, take: Callable[[sqlite3.Connection], T], path: Path) -> T | UnreadableTrace:
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = _text
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            # Or nothing at all could be read from a file that is cut.
            connection.execute("PRAGMA writable_schema = ON")
            return take(connection)
    except _DAMAGE as error:
        return UnreadableTrace(f"this database cannot be read: {error}", where=str(path))


def _or_raise(found: T | UnreadableTrace) -> T:
    if isinstance(found, UnreadableTrace):
        raise found
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _uri(path: Path, options: str) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}?{options}"


def _settled(path: Path) -> _State:
    """The state once it is old enough for the next change to have another time."""
    if -1 < time.time() - path.stat().st_mtime < _SETTLED_S:
        time.sleep(_SETTLED_S)
    return _state(path)


def _state(path: Path) -> _State:
    status = path.stat()
    database = (status.st_ino, status.st_size, status.st_mtime_ns, _beginning(path, _HEADER_BYTES))
    log = _beginning(_beside(path, "-wal"), _WAL_HEADER_BYTES)
    journal = _beginning(_beside(path, "-journal"), 8)
    return _State(database, log, bool(log) or any(journal))


def _copied(path: Path, folder: Path, say: Say) -> Path:
    files = [path, *(_beside(path, name) for name in JOURNALS)]
    _refuse_full_disk(files, folder)
    for attempt in range(_ATTEMPTS):
        before = _settled(path)
        for file in files:
            target = folder / file.name
            target.unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):  # a journal may end at any time
                shutil.copyfile(file, target)
        if _state(path)[:2] == before[:2]:
            return folder / path.name
        time.sleep(_PAUSE_S * attempt)
    say(_ALWAYS_CHANGING, 1)
    return folder / path.name


def _refuse_full_disk(files: list[Path], folder: Path) -> None:
    size = sum(file.stat().st_size for file in files if file.exists())
    if size > shutil.disk_usage(folder).free:
        raise UnreadableTrace(
            f"there is no room in {folder.parent} to copy this database, which is being written to",
            where=str(files[0]), hint="make room, set TMPDIR to another disk, or try again later",
        )  # fmt: skip


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _beginning(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        return b""
