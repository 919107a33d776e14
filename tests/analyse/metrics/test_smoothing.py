import numpy as np
import pytest

from strobe.analyse.metrics.smoothing import Smoothing, smoothed
from strobe.errors import UsageError


def by_loop(values, factors):
    """TensorBoard's loop, with a weight of its own for each value."""
    result, last, weight = [], 0.0, 0.0
    for value, factor in zip(values, factors, strict=True):
        last, weight = last * factor + value, weight * factor + 1
        result.append(last / weight)
    return np.array(result)


def tensorboards_loop(values, weight):
    result, last = [], 0.0
    for number, value in enumerate(values, 1):
        last = last * weight + (1 - weight) * value
        result.append(last / (1 - weight**number))
    return np.array(result)


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 512, 70_001])
@pytest.mark.parametrize("weight", [0.1, 0.6, 0.9, 0.999])
def test_a_weight_smooths_as_tensorboard_does(count, weight):
    values = 2 + np.random.default_rng(count).normal(size=count)
    expected = tensorboards_loop(values.tolist(), weight)
    found = smoothed(values, np.zeros(count), Smoothing(weight))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [1, 300, 70_001])
def test_a_half_life_weighs_by_age(count):
    random = np.random.default_rng(count)
    values, ts_ns = random.normal(size=count), np.cumsum(random.integers(0, 2000, size=count))
    factors = 0.5 ** (np.diff(ts_ns, prepend=ts_ns[:1]) / 5000)
    found = smoothed(values, ts_ns, Smoothing(half_life_ns=5000))
    np.testing.assert_allclose(found, by_loop(values, factors), rtol=1e-12, atol=1e-12)


def test_a_value_one_half_life_old_counts_half():
    found = smoothed(np.array([1.0, 4.0]), np.array([0, 1000]), Smoothing(half_life_ns=1000))
    assert found.tolist() == [1.0, (4 + 0.5) / 1.5]


def test_a_pause_far_longer_than_the_half_life_forgets_everything_before():
    ts_ns = np.array([0, 1, 10**18, 10**18 + 1])
    found = smoothed(np.array([9.0, 9.0, 1.0, 1.0]), ts_ns, Smoothing(half_life_ns=10))
    assert found[2:].tolist() == [1.0, 1.0]


def test_a_constant_stays_what_it_is():
    found = smoothed(np.full(5000, 0.1), np.zeros(5000), Smoothing(0.97))
    np.testing.assert_allclose(found, 0.1, rtol=1e-13)


def test_no_smoothing_changes_nothing():
    assert smoothed(np.array([1.0, 5.0]), np.zeros(2), Smoothing()).tolist() == [1.0, 5.0]
    assert not len(smoothed(np.zeros(0), np.zeros(0), Smoothing(0.5)))


@pytest.mark.parametrize(
    "smoothing",
    [Smoothing(1.0), Smoothing(-0.1), Smoothing(float("nan")), Smoothing(0.5, 100),
     Smoothing(half_life_ns=-1), Smoothing(half_life_ns=float("inf"))],
)  # fmt: skip
def test_what_cannot_smooth_is_refused(smoothing):
    with pytest.raises(UsageError, match="weight or a half-life"):
        smoothing.checked()
