import numpy as np
import pytest

from strobe.timeline.area import area, longest
from tests.timeline.drawn import covered, index_of, random_drawing

NESTED = """
    0/t op:outer 0..100
    0/t op:inner 10..40 parent=0
    0/t op:inner 50..60 parent=0
    0/t op:leaf  20..30 parent=1
"""


def test_times_are_cut_to_the_area_and_children_are_taken_off(tmp_path):
    index = index_of(tmp_path, NESTED)
    found = area(index, [0, 1, 2], 25, 55)
    assert found["rows"] == [
        ["outer", "op", 1, 30, 30 - 15 - 5, 30, 100],
        ["inner", "op", 2, 15 + 5, 10 + 5, 10, 30],
        ["leaf", "op", 1, 5, 5, 5, 10],
    ]
    assert found["busy_ns"] == {0: 30, 1: 20, 2: 5}
    assert (found["events"], found["span_ns"]) == (4, 30)


def test_self_time_is_the_same_when_the_rows_below_are_not_chosen(tmp_path):
    index = index_of(tmp_path, NESTED)
    assert area(index, [0], 25, 55)["rows"] == [["outer", "op", 1, 30, 10, 30, 100]]


@pytest.mark.parametrize("seed", range(3))
def test_busy_is_what_counting_nanoseconds_gives(tmp_path, seed):
    index = index_of(tmp_path, random_drawing(seed))
    t0, t1 = index.origin_ns + 700, index.origin_ns + 2900
    found = area(index, list(range(index.rows)), t0, t1)
    for row in range(index.rows):
        assert found["busy_ns"][row] == covered(index, row)[700:2900].sum()
    assert sum(row[3] for row in found["rows"]) == sum(found["busy_ns"].values())


def test_the_longest_events_come_in_order_of_time(tmp_path):
    index = index_of(tmp_path, NESTED)
    rows = longest(index, [0, 1, 2], 0, 100, most=2)
    assert [(name, ts, dur) for _, name, _, _, ts, dur, _ in rows] == [
        ("outer", 0, 100), ("inner", 10, 30),
    ]  # fmt: skip
    assert len(longest(index, [0, 1, 2], 0, 100, most=50)) == 4
    assert longest(index, [0], 500, 600, most=5) == []


def test_an_area_without_events(tmp_path):
    index = index_of(tmp_path, NESTED)
    found = area(index, [2], 70, 80)
    assert found["rows"] == [] and found["busy_ns"] == {2: 0}
    assert np.isclose(found["span_ns"], 10)
