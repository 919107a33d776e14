import numpy as np

from strobe.timeline.rows import place
from tests.timeline.drawn import covered, index_of, random_drawing


def test_each_depth_of_a_track_is_a_row():
    track = np.array([0, 0, 0, 1])
    start = np.array([0, 2, 3, 1])
    length = np.array([10, 5, 1, 4])
    parent = np.array([-1, 0, 1, -1])
    placed = place(track, start, length, parent)
    assert placed.rows_of_track.tolist() == [3, 1]
    assert dict(zip(placed.order.tolist(), placed.row.tolist(), strict=True)) == {
        0: 0, 1: 1, 2: 2, 3: 3,
    }  # fmt: skip


def test_events_that_overlap_get_rows_beside_each_other_and_reuse_them():
    start = np.array([0, 5, 12, 21])
    length = np.array([10, 15, 3, 2])
    placed = place(np.zeros(4, dtype=int), start, length, np.full(4, -1))
    row = dict(zip(placed.order.tolist(), placed.row.tolist(), strict=True))
    assert row == {0: 0, 1: 1, 2: 0, 3: 0}
    assert placed.rows_of_track.tolist() == [2]


def test_an_instant_shares_its_row_with_what_begins_there():
    placed = place(np.zeros(2, dtype=int), np.array([5, 5]), np.array([3, 0]), np.full(2, -1))
    assert placed.order.tolist() == [1, 0]
    assert placed.rows_of_track.tolist() == [1]


def test_rows_of_random_events_never_overlap(tmp_path):
    for seed in range(8):
        index = index_of(tmp_path / str(seed), random_drawing(seed))
        assert len(index.arrays["id"]) == 60
        for row in range(index.rows):
            assert covered(index, row).max(initial=0) <= 1


def test_times_too_long_for_one_key_are_sorted_all_the_same():
    start = np.array([2**61, 0, 5])
    placed = place(np.array([0, 1, 0]), start, np.ones(3, dtype=int), np.full(3, -1))
    assert placed.order.tolist() == [2, 0, 1]
