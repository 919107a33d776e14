"""Projects of trackio, of several versions."""

import contextlib
import datetime
import json
import random
import sqlite3
from contextlib import closing

import pytest
from fuzz.tracker_files import TRACKIO_TABLES, database, trackio_rows

from strobe.errors import StrobeError
from tests.ingest.formats.trackers.stores import only, runs
from tests.ingest.metrics import Read, same, shared, truth

AT = "2026-05-28T20:26:40.500000+00:00"
AT_NS = 1_780_000_000_500_000_000
OLD_TABLES = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL,
    run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_name TEXT NOT NULL,
    config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_name));
"""


def store(tmp_path, rows, tables=TRACKIO_TABLES):
    return database(tmp_path / "proj.db", tables, rows)


def logged(*values):
    return [(None, "r1", AT, "alpha", n, json.dumps(value)) for n, value in enumerate(values)]


def test_values_are_those_that_were_logged():
    found, expected = only(shared("others/trackio"), "trackio"), truth("others/trackio.truth.json")
    for tag, points in expected["metrics"].items():
        assert same(found.points(tag), points), tag
    assert found.facts() == {
        "optimizer": ("adamw", None), "batch_size": ("64", 64.0), "learning_rate": ("0.1", 0.1),
        "use_ema": ("true", None),
    }  # fmt: skip
    assert found.problems == []


def test_values_of_every_type(tmp_path):
    (tmp_path / "tables").mkdir()
    media = tmp_path / "media" / "proj"
    media.mkdir(parents=True)
    (media / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\6\0\0\0\4\x08\2\0\0\0")
    found = only(store(tmp_path, trackio_rows()), "trackio", tmp_path)
    assert same(found.points("loss"), [[0, 1.5], [10, "nan"], [20, "inf"], [30, "-inf"]])
    assert (found.points("nested.b.c"), found.points("flag")) == ([[0, 0.5]], [[0, 1.0]])
    assert [row["epoch"] for row in found.tagged("scalars", "loss")] == [None, 2.0, None, None]
    assert {row["ts_ns"] for row in found["scalars"]} == {AT_NS}
    assert [(row["tag"], row["value"], row["step"]) for row in found["scalars"][-1:]] == [
        ("system/gpu", 50.0, None)
    ]
    assert [(row["tag"], row["text"]) for row in found["texts"]] == [("text", "x")]
    assert [(row["tag"], row["shape"]) for row in found["tensors"]] == [("list", "[2]")]
    assert [(row["edges"], row["counts"]) for row in found["histograms"]] == [("[0,1]", "[3]")]
    assert [(row["tag"], row["width"], row["step"]) for row in found["images"]] == [("img", 6, 30)]
    assert found.facts() == {"lr": ("0.1", 0.1)}
    assert found.facts("lineage")["user"] == ("user", None)
    assert found.problems == []


def test_objects_that_trackio_logs(tmp_path):
    table = {"_type": "trackio.table", "_value": [{"x": 1}]}
    note = {"_type": "trackio.markdown", "_value": "# Note"}
    unknown = {"_type": "trackio.hologram", "file_path": "proj/none.bin"}
    rows = {"metrics": logged({"table": table, "note": note, "unknown": unknown, "big": 10**400})}
    found = only(store(tmp_path, rows), "trackio")
    assert [(row["tag"], row["text"]) for row in found["texts"]] == [
        ("table", '[{"x": 1}]'), ("note", "# Note")
    ]  # fmt: skip
    assert found.problems == [
        "media files are missing beside the run",
        "numbers beyond the range of float64 were left out",
    ]


def test_runs_by_name_and_by_their_ids(tmp_path):
    rows = trackio_rows()
    for table, more in trackio_rows("r2", "beta", steps=2).items():
        rows[table] += more
    path = store(tmp_path, rows)
    found = runs(path, "trackio")
    assert [(name, each.run, each.folder) for name, each in found.items()] == [
        ("alpha", "r1", path / "alpha"), ("beta", "r2", path / "beta")
    ]  # fmt: skip
    assert found["alpha"].first_unix_ns == AT_NS
    assert [step for step, _ in Read("trackio", found["beta"]).points("loss")] == [0, 10]


def test_databases_from_before_runs_had_ids(tmp_path):
    rows = {
        "metrics": [
            (None, "2026-05-28T20:26:40.500000", "alpha", 3, '{"loss": 1.5, "bad": NaN}'),
            (None, "2026-05-28T20:26:40.500000Z", "beta", 4, '{"loss": 2.5}'),
        ],
        "configs": [(None, "alpha", '{"lr": 0.1}', AT)],
    }  # fmt: skip
    found = runs(store(tmp_path, rows, OLD_TABLES), "trackio")
    assert [(name, each.run) for name, each in found.items()] == [
        ("alpha", "alpha"),
        ("beta", "beta"),
    ]
    alpha = Read("trackio", found["alpha"])
    assert (alpha.points("loss"), alpha.facts()) == ([[3, 1.5]], {"lr": ("0.1", 0.1)})
    assert same(alpha.points("bad"), [[3, "nan"]])
    local = datetime.datetime.fromisoformat("2026-05-28T20:26:40.500000")
    assert alpha["scalars"][0]["ts_ns"] == int(local.timestamp() * 10) * 10**8
    assert Read("trackio", found["beta"])["scalars"][0]["ts_ns"] == AT_NS


@pytest.mark.parametrize("text", ["", "today", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00"])
def test_what_is_no_time_is_unknown(tmp_path, text):
    rows = {"metrics": [(None, "r1", text, "alpha", 3, '{"loss": 1.5}')]}
    (row,) = only(store(tmp_path, rows), "trackio")["scalars"]
    assert (row["ts_ns"], row["step"]) == (None, 3)


def test_rows_that_are_no_objects_cost_themselves(tmp_path):
    rows = {"metrics": logged({"loss": 1}, {"loss": 2}, {"loss": 3}, {"loss": 4})}
    path = store(tmp_path, rows)
    with closing(sqlite3.connect(path)) as connection, connection:
        for step, text in ((1, '{"loss": 2'), (2, "[1, 2]"), (3, '{"a": 1}, {"b": 2}')):
            connection.execute("UPDATE metrics SET metrics = ? WHERE step = ?", (text, step))
    found = only(path, "trackio")
    assert found.points("loss") == [[0, 1.0]]
    assert [*found.trace.said.counts.items()] == [
        (("proj.db", "rows that are not JSON objects were left out"), 3)
    ]


@pytest.mark.parametrize("name", ["../../x.png", "/etc/hostname", "proj/link.png"])
def test_no_file_outside_the_media_is_read(tmp_path, name):
    (tmp_path / "home" / "media" / "proj").mkdir(parents=True)
    (tmp_path / "x.png").write_bytes(b"\x89PNG")
    (tmp_path / "home" / "media" / "proj" / "link.png").symlink_to(tmp_path / "x.png")
    value = {"_type": "trackio.image", "file_path": name}
    found = only(store(tmp_path / "home", {"metrics": logged({"img": value})}), "trackio")
    assert (found["images"], len(found.problems)) == ([], 1)


def test_a_run_that_is_being_written_is_read_as_far_as_it_is(tmp_path):
    path = store(tmp_path, trackio_rows(steps=2))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO metrics SELECT 99, run_id, timestamp, run_name, 99,"
                       " metrics FROM metrics WHERE id = 1")  # fmt: skip
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        found = only(path, "trackio")
        assert [step for step, _ in found.points("loss")] == [0, 10, 99]
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
        (run,) = runs(path, "trackio").values()
        assert [file.name for file in run.ignored] == ["proj.db-wal", "proj.db-shm"]


def test_mutated_databases_raise_nothing_but_our_own_errors(tmp_path):
    data = store(tmp_path, trackio_rows(steps=20)).read_bytes()
    source = random.Random(0)
    path = tmp_path / "mutated.db"
    for _ in range(100):
        mutated = bytearray(data)
        for _ in range(source.choice((1, 4, 16))):
            mutated[source.randrange(len(data))] = source.randrange(256)
        path.write_bytes(mutated)
        with contextlib.suppress(StrobeError):
            for found in runs(path, "trackio").values():
                Read("trackio", found)
