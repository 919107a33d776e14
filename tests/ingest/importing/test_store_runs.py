"""Files that contain several runs: each is opened by its name, and never taken for another."""

import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from fuzz.tracker_files import (
    MLFLOW_TABLES,
    TRACKIO_TABLES,
    database,
    mlflow_rows,
    trackio_rows,
    wandb_log,
    wandb_records,
)

from strobe.cli import main
from strobe.errors import UnreadableTrace, UsageError
from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.ingest.importing.sources import file_and_run
from tests.ingest.imports import imported
from tests.ingest.metrics import SAMPLES


@pytest.fixture
def store(tmp_path):
    """A database of MLflow with two runs, of four and two values."""
    rows = mlflow_rows()
    for table, more in mlflow_rows("b" * 32, "beta", steps=2).items():
        rows[table] += more if table != "experiments" else []
    return database(tmp_path / "mlflow.db", MLFLOW_TABLES, rows)


def count(run, tag="loss"):
    return run.sql(f"SELECT count(*) FROM scalars WHERE tag = '{tag}'").fetchall()[0][0]


def test_a_path_may_name_a_run_of_a_file(store, tmp_path):
    assert file_and_run(store) == (store, "")
    assert file_and_run(store / "alpha") == (store, "alpha")
    assert file_and_run(store / "a/b") == (store, "a/b")
    assert file_and_run(tmp_path) == (tmp_path, "")
    assert file_and_run(tmp_path / "none" / "run") == (tmp_path / "none" / "run", "")


@pytest.mark.parametrize(("name", "values"), [("alpha", 4), ("beta", 2), ("b" * 32, 2)])
def test_a_run_is_imported_by_its_name_or_id(store, tmp_path, name, values):
    run = imported(store / name, tmp_path / "run")
    assert count(run) == values
    assert run.manifest.started_unix_ns == 1_780_000_000 * 10**9


def test_a_file_with_several_runs_lists_them(store, tmp_path):
    with pytest.raises(UsageError, match="this file contains 2 runs") as error:
        imported(store, tmp_path / "run")
    assert f"strobe show {store}/alpha" in error.value.hint
    assert f"strobe show {store}/beta" in error.value.hint
    with pytest.raises(UsageError, match="there is no run 'gamma' in this file") as error:
        imported(store / "gamma", tmp_path / "run")
    assert f"strobe show {store}/beta" in error.value.hint
    assert not (tmp_path / "run").exists()


def test_runs_of_one_name_are_told_apart_by_their_ids(store, tmp_path):
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE runs SET name = 'alpha'")
    with pytest.raises(UsageError, match="this file contains 2 runs") as error:
        imported(store / "alpha", tmp_path / "run")
    assert f"strobe show {store}/{'b' * 32}" in error.value.hint


def test_a_folder_with_stores_of_all_kinds_lists_every_run(store, tmp_path):
    database(tmp_path / "proj.db", TRACKIO_TABLES, trackio_rows())
    shutil.copytree(SAMPLES / "wandb", tmp_path / "wandb")
    with pytest.raises(UsageError, match="contains traces of 4 different jobs") as error:
        imported(tmp_path, tmp_path / "run")
    for place in ("mlflow.db/alpha", "mlflow.db/beta", "proj.db", "wandb/offline-run-"):
        assert f"strobe show {tmp_path / place}" in error.value.hint
    assert "W&B 'first'" in error.value.hint


def test_two_files_of_one_folder_are_two_jobs(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"run-{name}.wandb").write_bytes(wandb_log(wandb_records()))
        database(tmp_path / f"{name}.db", TRACKIO_TABLES, trackio_rows())
    with pytest.raises(UsageError, match="contains traces of 4 different jobs") as error:
        imported(tmp_path, tmp_path / "run")
    for name in ("run-a.wandb", "run-b.wandb", "a.db", "b.db"):
        assert f"strobe show {tmp_path / name} " in error.value.hint


def test_a_folder_of_one_run_has_no_strangers(tmp_path):
    """Media, logs, locks and journals belong to it."""
    home = tmp_path / "wandb"
    shutil.copytree(SAMPLES / "wandb", home)
    (home / "debug.log").write_text("x")
    run = imported(home, tmp_path / "run")
    assert run.sql("SELECT count(*) FROM problems").fetchall() == [(0,)]
    assert count(run) == 6
    home = tmp_path / "trackio"
    home.mkdir()
    database(home / "proj.db", TRACKIO_TABLES, trackio_rows())
    (home / "proj.lock").write_text("")
    (home / "media" / "proj").mkdir(parents=True)
    (home / "media" / "proj" / "a.png").write_bytes(b"\x89PNG")
    run = imported(home, tmp_path / "run2")
    assert run.sql("SELECT count(*) FROM problems").fetchall() == [(0,)]
    assert count(run) == 4


def test_another_database_is_not_a_trace(tmp_path):
    database(tmp_path / "x.db", "CREATE TABLE t (a);", {"t": [(1,)]})
    with pytest.raises(Exception, match="the format of this file is not known"):
        imported(tmp_path / "x.db", tmp_path / "run")


def test_a_damaged_database_is_named_and_hides_no_other(store, tmp_path):
    data = store.read_bytes()
    (tmp_path / "a.db").write_bytes(data[:100] + b"\xff" * 2000)
    with pytest.raises(UsageError, match="contains traces of 2 different jobs"):
        imported(tmp_path, tmp_path / "run")
    with pytest.raises(UnreadableTrace, match="this database cannot be read: "):
        imported(tmp_path / "a.db", tmp_path / "run")


def test_a_run_named_twice_is_one_and_two_are_parts(store, tmp_path):
    import_traces([store / "alpha", store / ("a" * 32)], tmp_path / "one")
    assert count(open_run_dir(tmp_path / "one")) == 4
    import_traces([store / "alpha", store / "beta"], tmp_path / "two")
    assert count(open_run_dir(tmp_path / "two")) == 6


def test_commands_take_a_run_of_a_file(store, capsys):
    assert main(["show", str(store / "gamma")]) == 2
    assert "there is no run 'gamma'" in capsys.readouterr().err
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO tags VALUES ('a', 'b', 'c')")
        connection.commit()
        assert main(["show", str(store / "beta"), "scalars", "--csv"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 3
        before = store.read_bytes()
        connection.execute(
            "INSERT INTO metrics VALUES ('loss', 9, 1780000009000, ?, 9, 0)", ("b" * 32,)
        )
        connection.commit()
        assert store.read_bytes() == before  # the new value is in the journal
        assert main(["show", str(store / "beta"), "scalars", "--csv"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 4


def test_an_archive_with_several_runs_is_refused(store, tmp_path):
    archive = tmp_path / "runs.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(store, "mlflow.db")
    with pytest.raises(UsageError, match="this archive contains traces of 2 different jobs"):
        imported(archive, tmp_path / "run")
    shutil.copytree(SAMPLES / "wandb", tmp_path / "wandb")
    packed = shutil.make_archive(str(tmp_path / "wandb-run"), "zip", tmp_path / "wandb")
    assert count(imported(Path(packed), tmp_path / "run")) == 6
