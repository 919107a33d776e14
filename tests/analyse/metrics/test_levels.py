import numpy as np
import pytest

from strobe.analyse.metrics import levels


def values_with_everything(count, seed=0):
    random = np.random.default_rng(seed)
    values = np.cumsum(random.normal(size=count))
    for odd in (np.nan, np.inf, -np.inf):
        values[random.integers(0, count, size=max(1, count // 50))] = odd
    return values


def plain_sums(part, first):
    """What a range has, from its values one by one."""
    finite = [(value, at) for at, value in enumerate(part.tolist(), first) if np.isfinite(value)]
    if not finite:
        return np.inf, -np.inf, None, None, 0.0
    low, high = min(finite)[0], max(finite)[0]
    low_at = next(at for value, at in finite if value == low)
    high_at = next(at for value, at in finite if value == high)
    return low, high, low_at, high_at, sum(value for value, _ in finite)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 256, 257, 4096, 5000, 70_000])
def test_sums_over_any_range_are_those_of_its_values(count):
    values = values_with_everything(count)
    built = levels.build(values)
    assert [len(sums.low) for sums in built] == levels.level_sizes(count)
    random = np.random.default_rng(1)
    begin = np.append(random.integers(0, count, size=50), 0)
    end = np.append([random.integers(first, count) + 1 for first in begin[:-1]], count)
    found = levels.over_ranges(values, built, begin, end)
    for at, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        low, high, low_at, high_at, total = plain_sums(values[first:last], first)
        assert (found.low[at], found.high[at]) == (low, high)
        if low_at is not None:
            assert (found.low_at[at], found.high_at[at]) == (low_at, high_at)
        assert found.sum[at] == pytest.approx(total, rel=1e-12, abs=1e-9)


def test_of_equal_extremes_the_first_counts():
    values = np.tile([3.0, 1.0, 3.0, 1.0], 100)
    found = levels.over_ranges(values, levels.build(values), np.array([2]), np.array([398]))
    assert (found.low_at.tolist(), found.high_at.tolist()) == ([3], [2])


@pytest.mark.parametrize("same", [0, 5, 16, 300, 999, 1000])
def test_levels_that_grow_are_those_built_at_once(same):
    values = values_with_everything(9000)
    before = np.append(values[:same], np.full(1000 - same, 7.0))
    grown = levels.build(values, levels.build(before), same)
    for new, at_once in zip(grown, levels.build(values), strict=True):
        for grown_column, column in zip(new, at_once, strict=True):
            np.testing.assert_array_equal(grown_column, column)
