import numpy as np

from strobe.timeline.window import first_at_least, joined, spans_of
from tests.timeline.drawn import index_of, random_drawing


def test_every_stretch_is_searched_as_if_alone():
    values = np.array([1, 5, 9, 2, 2, 8, 0])
    low, high = np.array([0, 3, 6, 7]), np.array([3, 6, 7, 7])
    assert first_at_least(values, low, high, 5).tolist() == [1, 5, 7, 7]
    assert first_at_least(values, low, high, 0).tolist() == [0, 3, 6, 7]


def test_stretches_one_after_the_other():
    assert joined(np.array([2, 9, 5]), np.array([4, 9, 8])).tolist() == [2, 3, 5, 6, 7]


def test_events_that_touch_a_stretch_are_found(tmp_path):
    index = index_of(tmp_path, random_drawing(5))
    start = index.arrays["start_ns"]
    end = start + index.arrays["dur_ns"]
    rows = np.arange(index.rows)
    row = np.repeat(rows, np.diff(index.arrays["row_at"]))
    for t0, t1 in ((0, 50), (1000, 1001), (1500, 3000), (10**6, 10**6 + 5)):
        found = joined(*spans_of(index, rows, t0, t1))
        truth = np.flatnonzero((start < t1) & ((end > t0) | (start >= t0)))
        assert found.tolist() == truth.tolist()
        one = joined(*spans_of(index, np.array([1]), t0, t1))
        assert one.tolist() == [at for at in truth.tolist() if row[at] == 1]
