"""Small files as experiment trackers write them: of W&B, MLflow and trackio."""

import json
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

BLOCK_BYTES = 32 << 10
_HEAD = b":W&B\xe1\xbe\x00"
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4

MLFLOW_TABLES = """
CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name TEXT, lifecycle_stage TEXT);
CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), status VARCHAR(9),
    start_time BIGINT, lifecycle_stage VARCHAR(20), artifact_uri TEXT, experiment_id INTEGER);
CREATE TABLE metrics ("key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
    run_uuid VARCHAR(32) NOT NULL, step BIGINT NOT NULL, is_nan BOOLEAN NOT NULL,
    PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan));
CREATE INDEX index_metrics_run_uuid ON metrics (run_uuid);
CREATE TABLE params ("key" VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
CREATE TABLE tags ("key" VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
"""
TRACKIO_TABLES = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,
    timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,
    run_name TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE system_metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,
    timestamp TEXT NOT NULL, run_name TEXT NOT NULL, metrics TEXT NOT NULL);
CREATE INDEX idx_metrics_run_step ON metrics(run_id, step);
"""


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    found = b""
    while number >= 0x80:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def message(*fields: tuple[int, Any]) -> bytes:
    """Integers as varints, floats as doubles, texts and bytes with their length."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            found += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(data)) + data
    return found


def item(path: str | list[str], value: Any) -> bytes:
    """A key, or the keys of objects within objects, and a value as JSON."""
    keys = [(1, path)] if isinstance(path, str) else [(2, key) for key in path]
    return message(*keys, (16, json.dumps(value)))


def history(step: int, values: dict[str, Any], seconds: float | None = None) -> bytes:
    """The record of a log call; a name with a bar is a path: hist|_type."""
    found = dict(values)
    if seconds is not None:
        found["_timestamp"] = seconds
    items = [(1, item(name.split("|"), value)) for name, value in found.items()]
    return message((2, message(*items, (2, message((1, step))))))


def updates(kind: int, values: dict[str, Any]) -> bytes:
    """A record of summary (3) or config (5)."""
    return message((kind, message(*((1, item(name.split("|"), v)) for name, v in values.items()))))


def wandb_run(config: dict[str, Any], name: str = "first", seconds: int = 1_780_000_000) -> bytes:
    its = message(*((1, item(key, value)) for key, value in config.items()))
    start = message((1, seconds), (2, 5))
    texts = ((1, "abc"), (3, "demo"), (8, name), (10, "t1"), (13, "host"))
    return message((17, message(*texts, (4, its), (17, start))))


def wandb_log(records: Iterable[bytes]) -> bytes:
    """A .wandb file of these records."""
    data = bytearray(_HEAD)
    for record in records:
        kinds, rest = (_FULL, _FIRST), record
        while True:
            room = BLOCK_BYTES - len(data) % BLOCK_BYTES
            if room < 7:
                data += bytes(room)
                continue
            part, rest = rest[: room - 7], rest[room - 7 :]
            kind = kinds[bool(rest)]
            crc = zlib.crc32(bytes([kind]) + part)
            data += struct.pack("<IHB", crc, len(part), kind) + part
            kinds = (_LAST, _MIDDLE)
            if not rest:
                break
    return bytes(data)


def wandb_records() -> list[bytes]:
    """A run with every kind of record and value that is read."""
    picture = {"img|_type": "image-file", "img|path": "media/images/a.png", "img|width": 6}
    histogram = {"hist|_type": "histogram", "hist|values": [1, 2], "hist|bins": [0, 0.5, 1]}
    return [
        wandb_run({"lr": 0.1, "net": {"depth": 3}, "_wandb": {}}),
        message((12, message((1, "custom"), (6, message((3, 1)))))),
        message((12, message((2, "val/*"), (4, "custom")))),
        history(0, {"loss": 1.5, "nested|a": 1, "text": "x", "flag": True, "none": None}, 1.78e9),
        history(
            1, {"loss": float("nan"), "val/acc": 0.5, "custom": 100, "list": [1, 2]}, 1.78e9 + 1
        ),
        history(2, {**picture, **histogram, "loss": float("-inf"), "epoch": 0.5}),
        message(
            (2, message((1, message((2, "typed"), (6, 0.25))), (1, message((2, "i"), (5, 3)))))
        ),
        message((7, message((2, message((1, 1_780_000_001))), (3, item("cpu", 12.5))))),
        updates(3, {"loss": 0.25, "nested|a": 1}),
        updates(5, {"late": 1}),
        message((18, message((1, 0), (2, 11)))),
    ]


def database(path: Path, tables: str, rows: dict[str, list[tuple[Any, ...]]]) -> Path:
    """An SQLite database; small pages, so that mutations meet what matters."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA page_size = 512")
        connection.executescript(tables)
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
    return path


def mlflow_rows(run: str = "a" * 32, name: str = "alpha", steps: int = 4) -> dict[str, list[Any]]:
    largest = 1.7976931348623157e308
    values = [(0.5, 0), (0.0, 1), (largest, 0), (-largest, 0)]
    ms = 1_780_000_000_000
    return {
        "experiments": [(1, "exp one", "active")],
        "runs": [(run, name, "FINISHED", ms, "active", "", 1)],
        "metrics": [
            ("loss", value, ms + n, run, n, is_nan)
            for n in range(steps) for value, is_nan in [values[n % 4]]
        ],
        "params": [("lr", "0.1", run), ("net/depth", "3", run), ("text", "é x", run)],
        "tags": [("mlflow.user", "user", run), ("kind", "demo", run)],
    }  # fmt: skip


def trackio_rows(run: str = "r1", name: str = "alpha", steps: int = 4) -> dict[str, list[Any]]:
    at = "2026-05-28T20:26:40.500000+00:00"
    logged: list[Any] = [
        {"loss": 1.5, "nested": {"a": 1, "b": {"c": 0.5}}, "flag": True, "text": "x", "none": None},
        {"loss": "NaN", "list": [1, 2], "epoch": 2},
        {"loss": "Infinity", "hist": {"_type": "trackio.histogram", "bins": [0, 1], "values": [3]}},
        {"loss": "-Infinity", "img": {"_type": "trackio.image", "file_path": "proj/a.png"}},
    ]
    return {
        "metrics": [
            (None, run, at, name, 10 * n, json.dumps(logged[n % 4]).encode()) for n in range(steps)
        ],
        "configs": [(None, run, name, json.dumps({"lr": 0.1, "_Username": "user"}).encode(), at)],
        "system_metrics": [(None, run, at, name, json.dumps({"gpu": 50.0}))],
    }


def seeds() -> list[bytes]:
    found = [wandb_log(wandb_records())]
    with tempfile.TemporaryDirectory() as folder:
        for name, tables, rows in (
            ("mlflow", MLFLOW_TABLES, mlflow_rows()), ("trackio", TRACKIO_TABLES, trackio_rows())
        ):  # fmt: skip
            found.append(database(Path(folder, name), tables, rows).read_bytes())
    return found
