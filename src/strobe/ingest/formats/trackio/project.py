"""The runs of one project: rows of JSON in an SQLite database."""

import datetime
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.trackers import database, store_runs
from strobe.ingest.formats.trackers.logged_values import (
    EPOCH_TAGS,
    SYSTEM,
    TYPE,
    LoggedValues,
    as_number,
    flattened,
)
from strobe.ingest.formats.trackers.store_runs import StoredRun
from strobe.ingest.importing.sources import Found, files_below
from strobe.ingest.trace.codes import Array, Codes
from strobe.ingest.trace.metric_rows import UNKNOWN
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

SOURCE = "trackio"
_METRICS = {"timestamp", "run_name", "step", "metrics"}
_SYSTEM = {"timestamp", "run_name", "metrics"}
_CONFIGS = {"run_name", "config"}
_OWN = ("_Username", "_Created", "_Group")  # settings that trackio adds
_FACTS = {"_Username": "user", "_Group": "group"}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_LATEST = datetime.datetime(2242, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)


def found(path: Path) -> Found | None:
    """The database with its runs; None if it is not one of trackio. Raises UnreadableTrace."""
    its = store_runs.found(path, database.read(path, _runs, store_runs.unsaid))
    if its is None:
        return None
    lock = path.with_suffix(".lock")
    media = files_below(path.parent / "media" / path.stem)
    beside = (*its.ignored, *([lock] if lock.exists() else []), *media)
    return replace(its, runs=tuple(replace(run, ignored=beside) for run in its.runs))


def read(path: Path, run: str, words: Vocabulary) -> Trace:
    def take(connection: sqlite3.Connection, trace: Trace, say: database.Say) -> None:
        _take(
            connection, path, run, LoggedValues(trace.metrics, SOURCE, path.parent / "media", say)
        )

    return store_runs.read(path, words, take)


def _runs(connection: sqlite3.Connection) -> list[StoredRun]:
    tables = database.tables(connection)
    if not _is_trackio(tables):
        return []
    runs: dict[str, StoredRun] = {}
    for table in ("metrics", "system_metrics"):
        if not {*tables.get(table, ())} >= _SYSTEM:
            continue
        column = _run_column(tables[table])
        rows = connection.execute(
            f"SELECT {column}, max(run_name), min(timestamp) FROM {table} GROUP BY {column}"
        ).fetchall()
        for run, name, began in rows:
            if run is not None and str(run) not in runs:
                runs[str(run)] = StoredRun(str(run), str(name or ""), _unix_ns(began))
    return sorted(runs.values(), key=lambda run: (run.began_unix_ns or 0, run.name))


def _is_trackio(tables: dict[str, list[str]]) -> bool:
    return {*tables.get("metrics", ())} >= _METRICS


def _run_column(columns: list[str]) -> str:
    """The column that identifies runs: older tables have no IDs."""
    return "run_id" if "run_id" in columns else "run_name"


def _take(connection: sqlite3.Connection, path: Path, run: str, values: LoggedValues) -> None:
    tables = database.tables(connection)
    if not _is_trackio(tables):
        raise UnreadableTrace("this is not a database of trackio", where=str(path))
    for table, columns, prefix in (("metrics", _METRICS, ""), ("system_metrics", _SYSTEM, SYSTEM)):
        if {*tables.get(table, ())} >= columns:
            step = "step" if "step" in columns else "NULL"
            select = f"SELECT rowid, timestamp, {step}, metrics FROM {table}"
            where = f"{_run_column(tables[table])} = ?"
            for rows in database.batches(connection, select, where, (run,), values.say):
                _Rows(rows, values).take(prefix)
    _take_config(connection, run, tables, values)


def _take_config(
    connection: sqlite3.Connection, run: str, tables: dict[str, list[str]], values: LoggedValues
) -> None:
    columns = tables.get("configs", [])
    if not {*columns} >= _CONFIGS:
        return
    select, where = "SELECT rowid, run_name, config FROM configs", f"{_run_column(columns)} = ?"
    for rows in database.batches(connection, select, where, (run,), values.say):
        for name, text in rows:
            config = (_objects([text]) or [None])[0]
            if not isinstance(config, dict):
                values.say("settings that are not JSON were left out", 1)
                continue
            own = {name: config.pop(name, None) for name in _OWN}
            values.add_hyperparameters(config)
            facts = {fact: own[name] for name, fact in _FACTS.items()}
            values.add_facts("custom", {"run": run, "name": name, **facts})


class _Rows:
    """Log calls: a time, a step, and an object of values each."""

    def __init__(self, rows: list[database.Row], values: LoggedValues) -> None:
        self._values = values
        times, steps, texts = zip(*rows, strict=True)
        self._ts_ns = _times(times)
        self._step = np.array([_whole(step) for step in steps], dtype=np.int64)
        self._objects = _objects(texts)

    def take(self, prefix: str) -> None:
        owner, names, logged = self._columns()
        numbers = [_number(value) for value in logged]
        is_number = np.fromiter((each is not None for each in numbers), np.bool_, len(numbers))
        number = np.array([each for each in numbers if each is not None], dtype=np.float64)
        tags = np.array([self._values.tags[prefix + name] for name in names], dtype=np.int32)
        epoch = np.full(len(self._step), np.nan)
        for name in reversed(EPOCH_TAGS):
            mine = tags[is_number] == self._values.tags.get(prefix + name, -1)
            epoch[owner[is_number][mine]] = number[mine]
        at = owner[is_number]
        self._values.add_scalars(
            tags[is_number], self._step[at], self._ts_ns[at], number, epoch[at]
        )
        for row in np.flatnonzero(~is_number).tolist():
            at = owner[row]
            self._values.take(
                prefix + names[row], logged[row], int(self._step[at]), int(self._ts_ns[at])
            )

    def _columns(self) -> tuple[Array, list[str], list[Any]]:
        """The row, the name and the value of everything that was logged."""
        owner: list[int] = []
        names: list[str] = []
        logged: list[Any] = []
        for row, each in enumerate(self._objects):
            if not isinstance(each, dict):
                self._values.say("rows that are not JSON objects were left out", 1)
                continue
            if dict in map(type, each.values()) and TYPE not in each:
                each = dict(flattened(each))
            owner += [row] * len(each)
            names += each
            logged += each.values()
        return np.array(owner, dtype=np.int64), names, logged


def _number(value: Any) -> float | None:
    try:
        return as_number(value)
    except OverflowError:
        return None


def _objects(texts: Sequence[Any]) -> list[Any]:
    """What each JSON text is, all at once if nothing is wrong with any; None if it is not JSON."""
    encoded = [_bytes(text) for text in texts]
    try:
        found = msgspec.json.decode(b"[" + b",".join(encoded) + b"]")
        if len(found) == len(encoded):
            return list(found)
    except (ValueError, RecursionError):
        pass  # one by one, then
    return [_object(text) for text in encoded]


def _object(text: bytes) -> Any:
    try:
        return json.loads(text)  # which reads NaN, as older versions wrote it
    except (ValueError, RecursionError):
        return None


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else b""


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else UNKNOWN


def _times(texts: Sequence[Any]) -> Array:
    distinct = Codes[Any]()
    which = distinct.of(texts, len(texts))
    known = (_unix_ns(text) for text in distinct)
    return np.array([UNKNOWN if at is None else at for at in known], dtype=np.int64)[which]


def _unix_ns(text: Any) -> int | None:
    """Older versions wrote the local time of their machine, without a time zone."""
    try:
        when = datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00"))
        when = when if when.tzinfo else when.astimezone()
    except (ValueError, OverflowError, OSError):  # the last two: years before all time zones
        return None
    return (when - _EPOCH) // _MICROSECOND * 1000 if _EPOCH < when < _LATEST else None
