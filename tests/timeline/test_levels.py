import numpy as np
import pytest

from strobe.timeline.levels import coarser, coarsest_shift, finest_shift, level_of_events
from tests.timeline.drawn import covered, index_of, random_drawing


def events_of(index):
    row_at = index.arrays["row_at"]
    row = np.repeat(np.arange(index.rows), np.diff(row_at))
    start = index.arrays["start_ns"]
    return row, start, start + index.arrays["dur_ns"], np.arange(len(start))


def picture(level, rows, buckets):
    """Nanoseconds covered in each bucket of each row, as the level tells it."""
    told = np.zeros((rows, buckets), dtype=np.int64)
    for row, bucket, cover, run in zip(
        level.row, level.bucket, level.cover_ns, level.run, strict=True
    ):
        told[row, bucket] += cover
        told[row, bucket + 1 : bucket + 1 + run] += 1 << level.shift
    return told


@pytest.mark.parametrize("seed", range(6))
def test_every_level_tells_exactly_what_is_covered(tmp_path, seed):
    index = index_of(tmp_path, random_drawing(seed))
    level = level_of_events(0, *events_of(index))
    while True:
        size = 1 << level.shift
        buckets = (index.about["span_ns"] >> level.shift) + 2
        told = picture(level, index.rows, buckets)
        for row in range(index.rows):
            truth = np.zeros(buckets * size, dtype=np.int64)
            seen = covered(index, row)
            truth[: len(seen)] = seen
            assert (told[row] == truth.reshape(buckets, size).sum(axis=1)).all()
        assert level.begun.sum() == 60
        if buckets <= 3:
            break
        level = coarser(level, index.arrays["dur_ns"])


@pytest.mark.parametrize("shift", [1, 4, 7])
def test_a_level_is_the_same_from_events_and_from_the_level_below(tmp_path, shift):
    index = index_of(tmp_path, random_drawing(3))
    direct = level_of_events(shift, *events_of(index))
    level = level_of_events(0, *events_of(index))
    for _ in range(shift):
        level = coarser(level, index.arrays["dur_ns"])
    for name, column in level._asdict().items():
        if name != "runner":  # told only where there is a run
            assert np.array_equal(column, getattr(direct, name)), name
    has_run = level.run > 0
    assert np.array_equal(level.runner[has_run], direct.runner[has_run])


def test_the_longest_event_stands_for_a_bucket(tmp_path):
    index = index_of(tmp_path, "0/t op:short 0..3\n0/t op:long 4..60\n0/t op:other 61..63")
    (level,) = [level_of_events(6, *events_of(index))]
    assert level.longest.tolist() == [1]
    assert level.begun.tolist() == [3]
    assert level.cover_ns.tolist() == [3 + 56 + 2]


def test_levels_begin_where_buckets_hold_several_events_and_end_when_few_are_left():
    row = np.zeros(100, dtype=int)
    assert 1 << finest_shift(row, np.arange(100) * 1000) >= 1000
    assert finest_shift(row[:1], np.zeros(1, dtype=int)) == 0
    assert 256 <= 10**9 >> coarsest_shift(10**9) <= 512
