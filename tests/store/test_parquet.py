"""Files written here, read by DuckDB."""

import duckdb
import numpy as np
import pytest

from strobe.model.schema import Column, Table
from strobe.store import parquet
from strobe.store.strings import Strings

ANY = Table("any", "Every type.", (
    Column("whole", "i64", "A number."),
    Column("number", "f64", "A number.", nullable=True),
    Column("truth", "bool", "A truth.", nullable=True),
    Column("text", "str", "A text.", nullable=True),
    Column("left_out", "str", "Nothing.", nullable=True),
    Column("left_out_too", "i64", "Nothing.", nullable=True),
))  # fmt: skip
# Around the borders of a byte, of a block of differences and of a row group.
COUNTS = (0, 1, 2, 7, 8, 9, 1024, 1025, 1026, parquet.ROW_GROUP_ROWS + 1)
WHOLES = {
    "growing": lambda random, count: np.sort(random.integers(0, 10**15, count)),
    "anything": lambda random, count: random.integers(-(2**63), 2**63 - 1, count),
    "all the same": lambda random, count: np.full(count, -5),
    "small": lambda random, count: random.integers(0, 3, count, dtype=np.int32),
}
TEXTS = {"few": 3, "more than a byte counts": 300, "more than two bytes count": 70_000}


def some_nulls(random, values):
    return np.ma.masked_array(values, mask=random.random(len(values)) < 0.3)


@pytest.mark.parametrize("wholes", WHOLES)
@pytest.mark.parametrize("count", COUNTS)
def test_what_was_written_is_read_by_others(tmp_path, count, wholes):
    random = np.random.default_rng(count)
    given = {
        "whole": WHOLES[wholes](random, count),
        "number": some_nulls(random, random.random(count)),
        "truth": some_nulls(random, random.random(count) < 0.5),
        "text": Strings(random.integers(-1, 2, count, dtype=np.int32), ["a", "µ"]),
    }
    path = tmp_path / "any.parquet"
    parquet.write(path, ANY, given, count)
    assert parquet.rows_in(path) == count
    with duckdb.connect() as connection:
        found = connection.execute(f"FROM '{path}'").fetchall()
    texts = np.array(["a", "µ", None], dtype=object)[given["text"].codes]
    columns = (given["whole"], given["number"], given["truth"], texts)
    lists = [column.tolist() for column in columns]
    assert found == [(*row, None, None) for row in zip(*lists, strict=True)]


@pytest.mark.parametrize("texts", TEXTS)
def test_texts_are_numbers_as_wide_as_they_must_be(tmp_path, texts):
    values = [f"text {number}" for number in range(TEXTS[texts])]
    codes = np.random.default_rng(1).permutation(len(values)).astype(np.int32)
    given = {"whole": np.arange(len(codes)), "text": Strings(codes, values)}
    parquet.write(tmp_path / "any.parquet", ANY, given, len(codes))
    with duckdb.connect() as connection:
        query = f"SELECT text FROM '{tmp_path}/any.parquet' ORDER BY whole"
        found = connection.execute(query).fetchall()
    assert [text for (text,) in found] == [values[code] for code in codes]


def test_row_groups_tell_what_lies_in_them(tmp_path):
    count = parquet.ROW_GROUP_ROWS + 10
    numbers = np.linspace(0, 1, count)
    numbers[-1] = np.nan  # more or less than nothing
    given = {
        "whole": np.ma.masked_array(np.arange(count), mask=np.arange(count) == 3),
        "number": numbers,
        "text": Strings(np.arange(count, dtype=np.int32) // 100_000, ["a", "b" * 300]),
    }
    parquet.write(tmp_path / "any.parquet", ANY, given, count)
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT row_group_id, path_in_schema, stats_min_value, stats_max_value,"
            f" stats_null_count FROM parquet_metadata('{tmp_path}/any.parquet')"
            " WHERE path_in_schema IN ('whole', 'number', 'text')"
            " ORDER BY row_group_id, path_in_schema DESC"
        ).fetchall()
        (pruned,) = connection.execute(
            f"SELECT count(*) FROM '{tmp_path}/any.parquet' WHERE whole >= {count - 4}"
        ).fetchone()
    last = parquet.ROW_GROUP_ROWS - 1
    assert found == [
        (0, "whole", "0", str(last), 1),
        (0, "text", None, None, 0),  # the longest is too long to be told
        (0, "number", "0.0", str(numbers[last]), 0),
        (1, "whole", str(last + 1), str(count - 1), 0),
        (1, "text", None, None, 0),
        (1, "number", None, None, 0),
    ]
    assert pruned == 4


def test_rows_are_counted_in_files_of_others_too(tmp_path):
    path = tmp_path / "other.parquet"
    names = ", ".join(f'i + {n} AS "column {n}", i / 2 AS f{n}' for n in range(20))
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {names} FROM range(200000) t(i)) TO '{path}'")
    assert parquet.rows_in(path) == 200_000
