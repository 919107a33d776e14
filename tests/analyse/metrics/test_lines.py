import numpy as np

from strobe.analyse.metrics.lines import Points, of_attempt, over_attempts
from strobe.store.nullable import UNKNOWN


def points(step, ts_ns=None, value=None):
    count = len(step)
    ts_ns = range(count) if ts_ns is None else ts_ns
    value = range(count) if value is None else value
    return Points(np.array(step), np.array(ts_ns), np.array(value, dtype=np.float64))


def test_steps_in_order_are_one_line_for_both_axes():
    logged = of_attempt(points([1, 2, 5]))
    assert logged.by_step.step.tolist() == logged.by_time.step.tolist() == [1, 2, 5]
    assert logged.facts == {
        "logged": 3, "without_step": 0, "without_time": 0, "repeated": 0, "backward": 0,
        "superseded": 0,
    }  # fmt: skip


def test_of_a_repeated_step_the_last_one_counts_and_both_are_there_over_time():
    """MindSpore writes the last step of an epoch twice."""
    logged = of_attempt(points([1, 2, 3, 3, 4], value=[10, 20, 30, 31, 40]))
    assert logged.by_step.value.tolist() == [10, 20, 31, 40]
    assert logged.by_time.value.tolist() == [10, 20, 30, 31, 40]
    assert (logged.repeated, logged.backward) == (1, 0)


def test_steps_that_go_back_are_put_in_order():
    logged = of_attempt(points([5, 6, 1, 2, 6], value=[50, 60, 10, 20, 61]))
    assert logged.by_step.step.tolist() == [1, 2, 5, 6]
    assert logged.by_step.value.tolist() == [10, 20, 50, 61]
    assert logged.by_time.step.tolist() == [5, 6, 1, 2, 6]
    assert (logged.repeated, logged.backward) == (1, 2)


def test_times_that_go_back_are_put_in_order():
    logged = of_attempt(points([1, 2, 3], ts_ns=[10, 30, 20]))
    assert logged.by_step.step.tolist() == [1, 2, 3]
    assert logged.by_time.step.tolist() == [1, 3, 2]


def test_what_has_no_step_or_no_time_is_on_the_other_axis():
    logged = of_attempt(points([1, UNKNOWN, 3], ts_ns=[10, 20, UNKNOWN]))
    assert logged.by_step.step.tolist() == [1, 3]
    assert logged.by_time.ts_ns.tolist() == [10, 20]
    assert (logged.without_step, logged.without_time) == (1, 1)


def test_a_resumed_run_replaces_what_it_logs_again():
    first = of_attempt(points([1, 2, 3, 4], ts_ns=[1, 2, 3, 4], value=[10, 20, 30, 40]))
    second = of_attempt(points([3, 4, 5], ts_ns=[11, 12, 13], value=[31, 41, 51]))
    joined = over_attempts([first, second])
    assert joined.by_step.value.tolist() == [10, 20, 31, 41, 51]
    assert joined.by_time.value.tolist() == [10, 20, 30, 40, 31, 41, 51]
    assert (joined.logged, joined.superseded) == (7, 2)


def test_a_third_attempt_may_begin_before_the_second():
    parts = [points([1, 2, 3, 4]), points([3, 4, 5]), points([2, 3], value=[7, 8])]
    joined = over_attempts([of_attempt(part) for part in parts])
    assert joined.by_step.step.tolist() == [1, 2, 3]
    assert joined.by_step.value.tolist() == [0, 7, 8]
    assert joined.superseded == 6


def test_an_attempt_without_steps_replaces_nothing():
    joined = over_attempts([of_attempt(points([1, 2])), of_attempt(points([UNKNOWN]))])
    assert joined.by_step.step.tolist() == [1, 2]
    assert (joined.without_step, joined.superseded) == (1, 0)
