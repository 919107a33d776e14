import duckdb
import numpy as np
import pytest

from strobe.model.schema import Column, Table
from strobe.store import columns
from strobe.store.strings import Strings

TABLE = Table("few", "A few rows.", (
    Column("step", "i64", "A number."),
    Column("dur_ns", "i64", "A number that may be unknown.", nullable=True),
    Column("share", "f64", "Another.", nullable=True),
))  # fmt: skip


@pytest.mark.parametrize("takes_masks", [columns._takes_masks(), False], ids=["this", "older"])
def test_masked_entries_are_null_whichever_duckdb_it_is(tmp_path, monkeypatch, takes_masks):
    monkeypatch.setattr(columns, "_takes_masks", lambda: takes_masks)
    given = {
        "step": np.array([1, 2, 3]),
        "dur_ns": np.ma.masked_array(np.array([10, -1, 30]), mask=[False, True, False]),
        "share": np.ma.masked_array(np.array([0.5, 0.25, -1.0]), mask=[False, False, True]),
    }
    columns.write(TABLE, given, tmp_path / "few.parquet")
    with duckdb.connect() as connection:
        found = connection.execute(f"FROM '{tmp_path}/few.parquet' ORDER BY step").fetchall()
        kept = connection.execute(columns.registered(connection, "few", given)).fetchall()
    assert found == kept == [(1, 10, 0.5), (2, None, 0.25), (3, 30, None)]


def test_texts_are_written_and_what_is_no_text_is_shown(tmp_path):
    table = Table("told", "Texts.", (
        Column("step", "i64", "A number."),
        Column("name", "str", "A text.", nullable=True),
        Column("other", "str", "Another, never known.", nullable=True),
    ))  # fmt: skip
    given = {
        "step": np.arange(6),
        "name": Strings(np.array([-1, 2, 0, 1, 0, 3], dtype=np.int32), ["", "a", "µ", "\udc80"]),
        "other": Strings(np.full(6, -1, dtype=np.int32), []),
    }
    path = tmp_path / "told.parquet"
    columns.write(table, given, path)
    with duckdb.connect() as connection:
        found = connection.execute(f"FROM '{path}' ORDER BY step").fetchall()
        types = connection.execute(f"DESCRIBE FROM '{path}'").fetchall()
    names = [None, "µ", "", "a", "", "\\udc80"]
    assert found == [(step, name, None) for step, name in enumerate(names)]
    assert [row[1] for row in types] == ["BIGINT", "VARCHAR", "VARCHAR"]


def test_rows_are_put_in_the_order_of_texts_and_numbers(tmp_path):
    table = Table("told", "Texts.", (
        Column("name", "str", "A text."), Column("ts_ns", "i64", "A number."),
    ))  # fmt: skip
    given = {
        "name": Strings(np.array([1, 0, 2, 1, 0], dtype=np.int32), ["µ", "b", "B"]),
        "ts_ns": np.array([9, 3, 5, 7, 1]),
    }
    path = tmp_path / "told.parquet"
    columns.write(table, given, path, ("name", "ts_ns"))
    with duckdb.connect() as connection:
        found = connection.execute(f"FROM '{path}'").fetchall()
        wanted = connection.execute(f"FROM '{path}' ORDER BY name, ts_ns").fetchall()
    assert found == wanted == [("B", 5), ("b", 7), ("b", 9), ("µ", 1), ("µ", 3)]


def test_not_a_number_is_a_value_in_memory_as_on_disk():
    table = Table("t", "T.", (Column("a", "f64", "A."), Column("b", "f64", "B.", nullable=True)))
    values = np.array([1.0, np.nan, np.inf])
    with duckdb.connect() as connection:
        query = columns.relation_sql(connection, table, {"a": values, "b": values})
        (first, _), (nan, null), (infinite, _) = connection.sql(query).fetchall()
    assert (first, infinite) == (1.0, np.inf)
    assert nan != nan and null is None
