"""Databases that somebody is writing to: what is read, and what is left behind."""

import sqlite3
from contextlib import closing

import pytest

from strobe.errors import UnreadableTrace
from strobe.ingest.formats.trackers import database

ROWS = 2000


@pytest.fixture(params=["WAL", "DELETE", "TRUNCATE", "PERSIST"])
def writer(request, tmp_path):
    """A connection that has written all rows, in each of SQLite's ways."""
    path = tmp_path / "a folder?#" / "x.db"
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    connection.execute(f"PRAGMA journal_mode = {request.param}")
    connection.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?, ?)", ((n, "x" * 50) for n in range(ROWS)))
    connection.execute("COMMIT")
    with closing(connection):
        yield connection, path


def sums(connection):
    return connection.execute("SELECT count(*), sum(a) FROM t").fetchone()


def read(path, take=sums):
    said = []
    found = database.read(path, take, lambda what, count: said.append(what))
    return found, said


def files(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


EVERYTHING = ((ROWS, ROWS * (ROWS - 1) // 2), [])


def test_what_was_committed_is_read_and_nothing_is_left_beside_it(writer):
    _, path = writer
    before = files(path)
    assert read(path) == EVERYTHING
    assert files(path) == before


def test_a_database_at_rest_is_read_where_it_is(writer):
    connection, path = writer
    connection.close()
    before = files(path)

    def take(reading):
        assert reading.execute("PRAGMA database_list").fetchone()[2] == str(path)
        return sums(reading), files(path) == before

    assert read(path, take) == ((EVERYTHING[0], True), [])
    assert files(path) == before


def test_an_open_transaction_is_not_read_and_not_in_the_way(writer):
    connection, path = writer
    connection.execute("PRAGMA cache_size = 1")  # so that it writes before it commits
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE t SET a = -1")
    before = files(path)
    assert read(path) == EVERYTHING
    assert files(path) == before
    connection.execute("COMMIT")
    assert read(path)[0] == (ROWS, -ROWS)


def test_a_writer_never_waits(writer):
    """The writer commits while a read is at work: its timeout is zero."""
    connection, path = writer
    attempts = []

    def take(reading):
        found = sums(reading)
        unfinished = reading.execute("SELECT a FROM t")
        assert unfinished.fetchone() == (0,)
        if len(attempts) < 2:
            connection.execute("INSERT INTO t VALUES (0, 'more')")
        attempts.append(found)
        return sums(reading)

    found, said = read(path, take)
    assert found == attempts[-1] and found[0] in range(ROWS, ROWS + 3)
    assert attempts[0] == EVERYTHING[0]
    assert said == []


def test_a_database_that_never_rests_is_read_with_a_warning(tmp_path, monkeypatch):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.execute("INSERT INTO t VALUES (5)")
    state = database._state
    calls = []

    def changing(at):
        calls.append(at)
        return state(at)._replace(database=(len(calls),))

    monkeypatch.setattr(database, "_state", changing)
    monkeypatch.setattr(database, "_PAUSE_S", 0)
    monkeypatch.setattr(database, "_SETTLED_S", 0)
    (count, total), said = read(path)
    assert (count, total) == (1, 5)
    assert len(said) == 1 and "rows may be missing" in said[0]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"no database at all" * 100])
def test_what_is_no_database_is_refused(tmp_path, content):
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(UnreadableTrace, match="this database cannot be read"):
        read(path)


def test_a_missing_database_is_refused_and_not_created(tmp_path):
    with pytest.raises(UnreadableTrace, match="No such file"):
        read(tmp_path / "x.db")
    assert not list(tmp_path.iterdir())


def test_views_are_not_tables(tmp_path):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a INTEGER, b TEXT)")
        connection.execute(
            "CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r)"
            " SELECT x AS a FROM r"
        )
    assert read(path, database.tables)[0] == {"t": ["a", "b"]}


def test_without_its_index_a_table_gives_what_it_has(tmp_path):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("CREATE TABLE t (a INTEGER, b TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, 'x')", ((n,) for n in range(ROWS)))
        connection.execute("CREATE INDEX i ON t (b, a)")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])  # the index is at the end
    said = []

    def take(connection):
        parts = database.batches(
            connection, "SELECT rowid, a FROM t", "b = ?", ("x",), lambda *args: said.append(args)
        )
        return [a for rows in parts for (a,) in rows]

    found, _ = read(path, take)
    assert sorted(found) == [*range(ROWS)]
    assert said == [("an index of the database is damaged: its tables were read without it", 1)]
