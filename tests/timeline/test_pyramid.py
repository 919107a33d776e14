import numpy as np

from strobe.timeline import levels, pyramid
from strobe.timeline.tiles import tile
from tests.timeline.drawn import index_of, random_drawing


def test_batches_of_rows_give_what_all_rows_at_once_give(tmp_path, monkeypatch):
    monkeypatch.setattr(levels, "FEWEST_BUCKETS", 16)
    drawing = random_drawing(2, tracks=5, events=200, span=400_000)
    whole = index_of(tmp_path / "whole", drawing)
    monkeypatch.setattr(pyramid, "_EVENTS_AT_ONCE", 7)
    parts = index_of(tmp_path / "parts", drawing)
    assert whole.about["shifts"] == parts.about["shifts"] and len(whole.about["shifts"]) >= 2
    for name, array in whole.arrays.items():
        assert np.array_equal(array, parts.arrays[name]), name


def test_stored_levels_and_events_show_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(levels, "FEWEST_BUCKETS", 16)
    index = index_of(tmp_path, random_drawing(4, events=150, span=300_000))
    rows = list(range(index.rows))
    assert len(index.about["shifts"]) >= 3
    for shift in index.about["shifts"]:
        last = (index.about["span_ns"] >> shift) + 1
        stored = tile(index, rows, shift, 0, last)
        bare = index._replace(about={**index.about, "shifts": [60]})
        made = tile(bare, rows, shift, 0, last)
        for name, column in stored._asdict().items():
            assert np.array_equal(column, getattr(made, name)), (shift, name)


def test_counts_are_told_within_a_tenth():
    counts = np.array([0, 1, 2, 3, 100, 12345, 10**7])
    steps = pyramid._count_bytes(counts).astype(float)
    told = np.where(steps == 0, 0, 2 ** ((steps - 1) / pyramid.COUNT_STEPS))
    assert told[0] == 0 and told[1] == 1
    assert (np.abs(told - counts) <= 0.1 * counts).all()
