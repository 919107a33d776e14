import numpy as np
import pytest

from strobe.errors import UsageError
from strobe.timeline.pyramid import FULL
from strobe.timeline.tiles import tile
from tests.timeline.drawn import covered, index_of, random_drawing


def busy_of(shown, rows):
    """The part of each bucket of each row that a tile shows as covered."""
    told = np.zeros((rows, shown.buckets))
    row = np.repeat(np.arange(rows), shown.count_of_row)
    for at in range(len(shown.x)):
        x, width = int(shown.x[at]), int(shown.width[at])
        told[row[at], x : x + width] += shown.busy[at] / FULL
    return told


@pytest.mark.parametrize("seed", range(4))
def test_a_tile_shows_what_is_busy_wherever_it_is_cut(tmp_path, seed):
    index = index_of(tmp_path, random_drawing(seed, events=120, span=200_000))
    random = np.random.default_rng(seed)
    rows = list(range(index.rows))
    stored = index.about["shifts"]
    assert stored[0] > 3, "tiles made from events and stored ones are both looked at"
    for shift in (0, 3, stored[0], stored[-1]):
        buckets = (index.about["span_ns"] >> shift) + 1
        for _ in range(6):
            first = int(random.integers(0, buckets))
            last = min(int(random.integers(first, buckets)) + 1, first + 60_000)
            shown = tile(index, rows, shift, first, last)
            assert (shown.shift, shown.first_bucket) == (shift, first)
            told = busy_of(shown, len(rows))
            for row in rows:
                truth = np.zeros(last << shift)
                seen = covered(index, row)[: last << shift]
                truth[: len(seen)] = seen
                truth = truth[first << shift :].reshape(last - first, 1 << shift).mean(axis=1)
                assert np.abs(told[row] - truth).max() <= 0.5 / FULL + 1e-9


def test_a_tile_names_events_and_counts_them(tmp_path):
    index = index_of(tmp_path, "0/t op:a 0..100\n0/t op:b 100..101\n0/t op:b 102..104")
    shown = tile(index, [0], 3, 0, 14)
    names = [index.name(int(paint) >> 8) for paint in shown.paint]
    assert list(zip(names, shown.x.tolist(), shown.width.tolist(), strict=True)) == [
        ("a", 0, 1), ("a", 1, 11), ("a", 12, 1),
    ]  # fmt: skip
    assert shown.begun.tolist() == [1, 0, 1 + 8]  # two begin in the last one


def test_rows_come_in_the_order_they_are_asked_for(tmp_path):
    index = index_of(tmp_path, "0/t0 op:a 0..10\n0/t1 op:b 0..10\n0/t1 op:c 20..30")
    assert tile(index, [1, 0], 0, 0, 40).count_of_row.sum() == 2 * 3 + 3
    assert tile(index, [1], 0, 15, 40).count_of_row.tolist() == [3]
    assert tile(index, [], 0, 0, 40).count_of_row.tolist() == []


@pytest.mark.parametrize(
    ("rows", "shift", "first", "last"),
    [([9], 0, 0, 10), ([-1], 0, 0, 10), ([0], 0, 5, 5), ([0], 0, -1, 5), ([0], 0, 0, 10**6),
     ([0], 60, 0, 1), ([0], -1, 0, 1)],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path, rows, shift, first, last):
    index = index_of(tmp_path, "0/t0 op:a 0..10")
    with pytest.raises(UsageError):
        tile(index, rows, shift, first, last)


def test_a_run_without_events_has_an_empty_timeline(tmp_path):
    index = index_of(tmp_path, "")
    assert index.rows == 0
    assert len(tile(index, [], 3, 0, 100).x) == 0
