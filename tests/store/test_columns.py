import duckdb
import numpy as np
import pytest

from strobe.model.schema import Column, Table
from strobe.store import columns

TABLE = Table("few", "A few rows.", (
    Column("step", "i64", "A number."),
    Column("dur_ns", "i64", "A number that may be unknown.", nullable=True),
    Column("share", "f64", "Another.", nullable=True),
))  # fmt: skip


@pytest.mark.parametrize("takes_masks", [columns._TAKES_MASKS, False], ids=["this", "older"])
def test_masked_entries_are_null_whichever_duckdb_it_is(tmp_path, monkeypatch, takes_masks):
    monkeypatch.setattr(columns, "_TAKES_MASKS", takes_masks)
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
