"""The runs of an SQLite database: `mlflow.db`, where MLflow stores them by default."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.mlflow import images
from strobe.ingest.formats.mlflow.facts import SOURCE, store_facts
from strobe.ingest.formats.mlflow.run_folder import nanoseconds
from strobe.ingest.formats.trackers import database, store_runs
from strobe.ingest.formats.trackers.logged_values import LoggedValues
from strobe.ingest.formats.trackers.store_runs import StoredRun
from strobe.ingest.importing.sources import Found, files_below
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace

_RUNS = {"run_uuid", "name", "start_time", "lifecycle_stage", "artifact_uri", "experiment_id"}
_METRICS = {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}
_INFINITE = np.finfo(np.float64).max  # what MLflow stores for infinity
_FILES, _ARTIFACTS = "mlruns", "artifacts"  # beside the database, by default
_LATEST_MS = (1 << 33) * 1000


def found(path: Path) -> Found | None:
    """The database with its runs; None if it is not one of MLflow. Raises UnreadableTrace."""
    its = store_runs.found(path, database.read(path, _runs, store_runs.unsaid))
    if its is None:
        return None
    files = [file for file in files_below(path.parent / _FILES) if _ARTIFACTS in file.parts]
    return replace(
        its, runs=tuple(replace(run, ignored=(*run.ignored, *files)) for run in its.runs)
    )


def read(path: Path, run: str, words: Vocabulary) -> Trace:
    def take(connection: sqlite3.Connection, trace: Trace, say: database.Say) -> None:
        _take(connection, path, run, LoggedValues(trace.metrics, SOURCE, None, say))

    return store_runs.read(path, words, take)


def _runs(connection: sqlite3.Connection) -> list[StoredRun]:
    if not _is_mlflow(database.tables(connection)):
        return []
    rows = connection.execute(
        "SELECT run_uuid, name, start_time FROM runs"
        " WHERE lifecycle_stage IS NOT 'deleted' ORDER BY start_time"
    ).fetchall()
    return [
        StoredRun(str(run), str(name or ""), _unix_ns(began)) for run, name, began in rows if run
    ]


def _is_mlflow(tables: dict[str, list[str]]) -> bool:
    return {*tables.get("runs", ())} >= _RUNS and {*tables.get("metrics", ())} >= _METRICS


def _unix_ns(time_ms: Any) -> int | None:
    is_time = isinstance(time_ms, int) and 0 < time_ms < _LATEST_MS
    return time_ms * 10**6 if is_time else None


def _take(connection: sqlite3.Connection, path: Path, run: str, values: LoggedValues) -> None:
    tables = database.tables(connection)
    if not _is_mlflow(tables):
        raise UnreadableTrace("this is not a database of MLflow", where=str(path))
    _take_metrics(connection, run, values)
    about = _about(connection, run, tables, values.say)
    params, tags = (
        _texts(connection, table, run, tables, values.say) for table in ("params", "tags")
    )
    store_facts(values, params, tags, about)
    for folder in _image_folders(path, run, about):
        images.take(folder, values)


def _take_metrics(connection: sqlite3.Connection, run: str, values: LoggedValues) -> None:
    select = "SELECT rowid, key, timestamp, value, step, is_nan FROM metrics"
    for rows in database.batches(connection, select, "run_uuid = ?", (run,), values.say):
        good = [row for row in rows if _is_sound(row)]
        values.say("rows of a metric that are none were left out", len(rows) - len(good))
        if not good:
            continue
        key, time_ms, value, step, is_nan = zip(*good, strict=True)
        values.add_scalars(
            values.tags.of(key), np.array(step, dtype=np.int64),
            nanoseconds(np.array(time_ms, dtype=np.int64)),
            _values(np.array(value, dtype=np.float64), np.array(is_nan, dtype=np.bool_)),
        )  # fmt: skip


def _is_sound(row: database.Row) -> bool:
    """SQLite stores any type in any column."""
    key, time_ms, value, step, is_nan = map(type, row)
    return key is str and (time_ms, step, is_nan) == (int, int, int) and value in (float, int)


def _values(value: Array, is_nan: Array) -> Array:
    infinite = np.where(np.abs(value) >= _INFINITE, np.copysign(np.inf, value), value)
    found: Array = np.where(is_nan, np.nan, infinite)
    return found


def _about(
    connection: sqlite3.Connection, run: str, tables: dict[str, list[str]], say: database.Say
) -> dict[str, Any]:
    columns = [name for name in ("name", "status", "artifact_uri", "experiment_id") if name in
               tables["runs"]]  # fmt: skip
    select = f"SELECT rowid, {', '.join(columns)} FROM runs"
    about: dict[str, Any] = {"run": run}
    for rows in database.batches(connection, select, "run_uuid = ?", (run,), say):
        about |= dict(zip(columns, rows[0], strict=True)) if rows else {}
    if {"experiment_id", "name"} <= {*tables.get("experiments", ())}:
        its = (about.get("experiment_id"),)
        select = "SELECT rowid, name FROM experiments"
        for rows in database.batches(connection, select, "experiment_id = ?", its, say):
            about["experiment"] = rows[0][0] if rows else ""
    return about


def _texts(
    connection: sqlite3.Connection, table: str, run: str, tables: dict[str, list[str]],
    say: database.Say,
) -> dict[str, str]:  # fmt: skip
    found: dict[str, str] = {}
    if not {"key", "value", "run_uuid"} <= {*tables.get(table, ())}:
        return found
    select = f"SELECT rowid, key, value FROM {table}"
    for rows in database.batches(connection, select, "run_uuid = ?", (run,), say):
        found |= {str(key): str(value) for key, value in rows if value is not None}
    return found


def _image_folders(path: Path, run: str, about: dict[str, Any]) -> list[Path]:
    """The run's folder of files, if it is below the database's: its URI may lead anywhere."""
    home = path.absolute().parent
    uri = urlsplit(str(about.get("artifact_uri") or ""))
    choices = [home / unquote(uri.path)] if uri.scheme in ("", "file") and uri.path else []
    choices.append(home / _FILES / str(about.get("experiment_id")) / run / _ARTIFACTS)
    inside = [folder for folder in choices if folder.resolve().is_relative_to(home.resolve())]
    return [folder for folder in inside if folder.is_dir()][:1]
