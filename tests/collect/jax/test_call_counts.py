"""Which calls update, told from counters that can be read, or not always; without jax."""

from types import SimpleNamespace

import pytest

from strobe.collect.jax.call_counts import Counts, Reading, find_counters


def told(calls_each, is_read):
    """Of calls that make updates of so many each: what is told of them, and what was the truth."""
    counts, truth, calls = Counts(len, len), "", []
    updates = 0
    for number in calls_each:
        for since in range(1, number + 1):
            updates += since == number
            truth += "U" if since == number else "-"
            reading = Reading(since % number, updates)
            must = counts.is_open
            calls.append(SimpleNamespace(reading=None, updates=None))
            if must or is_read(len(calls)):
                calls[-1].reading = reading
            counts.take(calls[-1])
    said = "".join({True: "U", False: "-", None: "?"}[call.updates] for call in calls)
    return said, truth


@pytest.mark.parametrize("each", [1, 2, 4, 12])
@pytest.mark.parametrize(
    "is_read", [lambda n: True, lambda n: False, lambda n: n > 3, lambda n: n % 3 == 0]
)
def test_each_update_is_told(each, is_read):
    said, truth = told([each] * 8, is_read)
    assert said == truth


def test_the_script_is_not_held_up_for_ever():
    """No update comes: counters that cannot be read are left alone after a while."""
    counts, held_up = Counts(len, len), 0
    for number in range(1, 1000):
        held_up += counts.is_open
        reading = Reading(number, 0) if counts.is_open else None
        counts.take(SimpleNamespace(reading=reading, updates=None))
    assert 0 < held_up <= 128


def test_a_schedule_is_followed_where_counters_can_be_read():
    said, truth = told([2, 2, 2, 5, 5, 1, 1, 3], lambda n: True)
    assert said == truth


def test_a_schedule_is_learned_anew_from_what_is_read_now_and_then():
    said, truth = told([2] * 6 + [5] * 8, lambda n: n % 4 == 0)
    assert said[:12] == truth[:12] and said[-20:] == truth[-20:]


def test_a_call_that_is_skipped_is_none_that_updates():
    counts, calls = Counts(len, len), []
    for reading in ((1, 3), (0, 4), (0, 4), (1, 4), (0, 5)):
        calls.append(SimpleNamespace(reading=Reading(*reading), updates=None))
        counts.take(calls[-1])
    assert [call.updates for call in calls] == [False, True, False, False, True]


def test_counters_are_found_by_their_names_wherever_the_state_is():
    paths = [
        ("0", "params", "w"),
        ("0", "opt", "1", "gradient_step"),
        ("0", "opt", "1", "mini_step"),
    ]
    assert find_counters(paths) == (2, 1)
    assert find_counters([("mini_step",), ("other", "gradient_step")]) is None
