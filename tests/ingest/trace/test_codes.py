"""Texts as numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.ingest.trace.codes import Codes, distinct, mapped, occurring


def test_numbers_in_the_order_of_first_sight():
    codes = Codes()
    assert codes.of(["b", "a", "b"], 3).tolist() == [0, 1, 0] and list(codes) == ["b", "a"]
    assert mapped(np.array([1, -1, 0]), [7, 8]).tolist() == [8, -1, 7]


def test_distinct_rows_of_columns():
    columns = [np.array(c) for c in ([1, 1, -1, 1], [5, 5, 5, -1])]
    rows, back = distinct(columns)
    assert [rows[i] for i in back] == [[1, 5], [1, 5], [-1, 5], [1, -1]] and len(rows) == 3
    assert distinct([np.zeros(0, dtype=np.int64)])[0] == []


def test_distinct_rows_agree_with_numpy_however_wide_the_columns_are():
    rng = np.random.default_rng(5)
    for wide in ([3, 2, 4], [400, 300, 900], [2**31 - 1, 5, 2**62], [1, 70_000, 2]):
        columns = [rng.integers(-1, high, 500) for high in wide]
        columns[0] = columns[0].astype(np.int32)
        expected, where = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        rows, back = distinct(columns)
        assert rows == expected.tolist()
        assert back.tolist() == where.ravel().tolist()


def test_distinct_rows_of_columns_too_wide_for_one_number():
    random = np.random.default_rng(0)
    columns = [random.integers(-1, 2**40, 500) for _ in range(4)]
    columns = [np.concatenate([column, column]) for column in columns]
    rows, back = distinct(columns)
    assert len(rows) == 500
    assert np.array_equal(np.array(rows)[back], np.stack(columns, axis=1))


@pytest.mark.parametrize("highest", [3, 70_000, 2**62])  # by a table, by a sparse one, by sorting
@given(data=st.data())
def test_what_occurs_is_what_numpy_finds_by_sorting(highest, data):
    values = np.array(
        data.draw(st.lists(st.integers(-highest - 1, highest), max_size=50)), dtype=np.int64
    )
    found, back = occurring(values)
    expected, expected_back = np.unique(values, return_inverse=True)
    assert found.tolist() == expected.tolist() and back.tolist() == expected_back.tolist()


def test_what_occurs_among_short_integers():
    found, back = occurring(np.array([-1, 2**31 - 1, -1], dtype=np.int32))
    assert found.tolist() == [-1, 2**31 - 1] and back.tolist() == [0, 1, 0]
