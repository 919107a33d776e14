import duckdb
import numpy as np

from strobe.model.schema import Column, Table
from strobe.store import columns
from strobe.store.nullable import Nullable

TABLE = Table("some", "Some.", (Column("n", "i64", "A number.", nullable=True),))


def test_what_is_masked_is_null_wherever_a_column_goes(tmp_path):
    given = {"n": Nullable(np.array([1, 2, 3, 4]), np.array([False, True, False, True]))}
    for wanted, column in (
        ([(1,), (None,), (3,), (None,)], given),
        ([(3,), (None,)], columns.picked(given, np.array([2, 1]))),
        ([(1,), (3,)], columns.picked(given, np.array([True, False, True, False]))),
    ):
        columns.write(TABLE, column, tmp_path / "some.parquet")
        with duckdb.connect() as connection:
            held = columns.relation_sql(connection, TABLE, column)
            assert connection.execute(held).fetchall() == wanted
            assert connection.execute(f"FROM '{tmp_path}/some.parquet'").fetchall() == wanted
