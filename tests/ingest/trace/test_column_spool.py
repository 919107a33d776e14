import numpy as np

from strobe.ingest.trace import span_spool
from strobe.ingest.trace.codes import narrow
from strobe.ingest.trace.column_spool import Pile, deal


def test_what_comes_back_is_what_came_in_memory_and_on_disk(tmp_path):
    parts = [{"a": np.arange(n), "b": np.full(n, n, dtype=np.int32)} for n in (3, 0, 4, 2)]
    with span_spool.scratch_in(tmp_path):
        for pile in (Pile(100), Pile(5), Pile(0)):
            for part in parts:
                pile.append(part)
            assert pile.rows == 9
            for _ in range(2):
                assert [len(part["a"]) for part in pile] == [3, 4, 2]
            whole = pile.joined()
            assert whole["a"].tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1]
            assert whole["b"].tolist() == [3, 3, 3, 4, 4, 4, 4, 2, 2]
            assert whole["b"].dtype == np.int32
            bunches = [bunch["a"].tolist() for bunch in pile.bunches(4)]
            assert bunches == [[0, 1, 2, 0, 1, 2, 3], [0, 1]]
            pile.clear()
            assert pile.rows == 0 and list(pile) == [] and pile.joined() == {}
    assert list(tmp_path.iterdir()) == []


def test_a_column_is_as_wide_as_its_widest_part():
    pile = Pile(100)
    for values in ([1, 2], [2**40], [3]):
        pile.append({"a": narrow(np.array(values))})
    whole = pile.joined()
    assert whole["a"].dtype == np.int64 and whole["a"].tolist() == [1, 2, 2**40, 3]


def test_numbers_are_narrowed_where_they_fit():
    for values, dtype in (([], np.int32), ([-(2**31), 2**31 - 1], np.int32), ([2**31], np.int64),
                          ([-(2**31) - 1], np.int64)):  # fmt: skip
        found = narrow(np.array(values, dtype=np.int64))
        assert found.dtype == dtype and found.tolist() == values


def test_rows_of_a_key_are_dealt_to_one_pile_in_their_order():
    piles = [Pile(100) for _ in range(3)]
    for first in (0, 6):
        rows = np.arange(first, first + 6)
        deal({"row": rows}, rows % 4 - 2, piles)
    found = [pile.joined()["row"].tolist() if pile.rows else [] for pile in piles]
    assert sorted(row for rows in found for row in rows) == list(range(12))
    assert all(rows == sorted(rows) for rows in found)
    for key in range(4):
        assert sum(any(row % 4 == key for row in rows) for rows in found) == 1
