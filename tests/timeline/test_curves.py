import numpy as np
import pytest

from strobe.errors import UsageError
from strobe.timeline.curves import curve
from tests.timeline.drawn import index_of

EXTRA = {
    "counters": {
        "rank": [0] * 6,
        "ts_ns": [0, 10, 12, 30, 0, 1_000_000_000],
        "name": ["cores"] * 4 + ["faults_total"] * 2,
        "value": [1.0, 4.0, 2.0, 8.0, 100.0, 150.0],
    },
    "queues": {"rank": [0], "ts_ns": [7], "name": ["batches"], "length": [3], "capacity": [4]},
    "allocations": {
        "rank": [0], "address": [1], "bytes": [64], "ts_ns": [3], "freed_ns": [9],
        "device": ["cpu"],
    },
}  # fmt: skip


@pytest.fixture
def index(tmp_path):
    return index_of(tmp_path, "0/t op:a 0..40", EXTRA)


def number_of(index, name):
    return [entry["name"] for entry in index.about["curves"]].index(name)


def test_counters_queues_and_memory_are_curves(index):
    names = [entry["name"] for entry in index.about["curves"]]
    assert names == ["allocated bytes cpu", "cores", "faults per second", "queue batches"]
    grown = index.about["curves"][number_of(index, "faults per second")]
    assert (grown["lowest"], grown["highest"]) == (50.0, 50.0)


def test_each_bucket_has_its_extremes_and_its_last_value(index):
    drawn = curve(index, number_of(index, "cores"), 5, 45, buckets=2)
    assert drawn.before == 1.0
    assert drawn.bucket.tolist() == [0, 1]
    assert (drawn.low.tolist(), drawn.high.tolist()) == ([2.0, 8.0], [4.0, 8.0])
    assert drawn.last.tolist() == [2.0, 8.0]


def test_a_stretch_without_values_has_the_one_before(index):
    drawn = curve(index, number_of(index, "cores"), 100, 200, buckets=10)
    assert drawn.before == 8.0 and len(drawn.bucket) == 0
    assert curve(index, number_of(index, "cores"), -50, 0, buckets=10).before is None


def test_no_spike_is_lost_however_coarse_the_picture(tmp_path):
    values = np.ones(10_000)
    values[7_777] = 99.0
    columns = {
        "rank": [0] * 10_000, "ts_ns": list(range(10_000)), "name": ["x"] * 10_000,
        "value": values.tolist(),
    }  # fmt: skip
    index = index_of(tmp_path, "0/t op:a 0..10000", {"counters": columns})
    assert curve(index, 0, 0, 10_000, buckets=3).high.max() == 99.0


@pytest.mark.parametrize(
    ("number", "t1", "buckets"), [(9, 10, 5), (-1, 10, 5), (0, 0, 5), (0, 10, 0), (0, 10, 10**6)]
)
def test_what_cannot_be_is_refused(index, number, t1, buckets):
    with pytest.raises(UsageError):
        curve(index, number, 0, t1, buckets)
