import json
import math

import numpy as np
import pytest

from strobe.collect.metrics.histograms import array_histogram, bin_count, edges, torch_histogram

CASES = {
    "empty": [],
    "one": [3.0],
    "equal": [2.0] * 7,
    "few": [1.0, 2.0, 2.0, 5.0],
    "many": list(np.random.default_rng(0).normal(size=5000).astype(np.float32)),
    "odd": [1.0, math.nan, math.inf, -math.inf, 2.0, -3.0, math.nan],
    "only nan": [math.nan],
    "huge": [3e38, -3e38, 1.0],
}


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_numpy(name):
    values = np.array(CASES[name], dtype=np.float64)
    finite = values[np.isfinite(values)]
    row = array_histogram(values)
    bounds, counts = json.loads(row["edges"]), json.loads(row["counts"])
    assert np.array_equal(counts, np.histogram(finite, np.array(bounds))[0])
    assert sum(counts) == len(finite)
    assert len(counts) == bin_count(len(finite))
    assert row["count"] == len(values)
    assert row["nan_count"] == np.isnan(values).sum()
    assert row["positive_infinity_count"] == (values == math.inf).sum()
    if len(finite):
        assert (row["min"], row["max"]) == (finite.min(), finite.max())
        assert row["sum"] == pytest.approx(finite.sum())
        assert row["sum_squares"] == pytest.approx((finite**2).sum())


@pytest.mark.parametrize("name", CASES)
def test_torch_counts_as_numpy_does(name):
    torch = pytest.importorskip("torch")
    values = np.array(CASES[name], dtype=np.float64)
    ours, theirs = torch_histogram(torch.tensor(values)), array_histogram(values)
    assert json.loads(ours["edges"]) == json.loads(theirs["edges"])
    differ = np.abs(np.subtract(json.loads(ours["counts"]), json.loads(theirs["counts"])))
    assert differ.sum() <= 2  # a value at an edge
    for key in (
        "count",
        "nan_count",
        "positive_infinity_count",
        "negative_infinity_count",
        "min",
        "max",
    ):
        assert ours[key] == theirs[key], key
    for key in ("sum", "sum_squares"):
        assert ours[key] == pytest.approx(theirs[key])


def test_more_values_in_a_bin_than_float32_counts():
    torch = pytest.importorskip("torch")
    values = torch.zeros((1 << 24) + 3)
    values[0] = 1.0
    counts = json.loads(torch_histogram(values)["counts"])
    assert counts[0] == (1 << 24) + 2
    assert sum(counts) == (1 << 24) + 3


@pytest.mark.parametrize("value", [0.0, 1e300, -5.0, 1e17])
def test_edges_around_one_value_contain_it(value):
    low, middle, high = edges(value, value, 2)
    assert low < value < high
    assert low < middle < high
