import pytest

from strobe.collect.steps import StepCount


def counts(updates: str) -> str:
    """The number of finished steps after each update; one letter an optimizer."""
    steps = StepCount()
    result = []
    for letter in updates:
        steps.updated(ord(letter))
        result.append(str(steps.done))
    return "".join(result)


@pytest.mark.parametrize(
    "updates, expected",
    [
        ("AAAA", "1234"),
        ("DGDGDG", "111223"),  # the first cycle is learned, then the closing optimizer counts
        ("DDDGDDDGD", "123335666"),  # an irregular cycle is counted late, but counted
    ],
)
def test_a_step_is_a_cycle_of_optimizers(updates: str, expected: str):
    assert counts(updates) == expected


def test_backward_passes_count_only_where_no_optimizer_exists():
    by_hand, with_optimizer = StepCount(), StepCount()
    with_optimizer.has_optimizer = True
    for steps in (by_hand, with_optimizer):
        for _ in range(10):
            steps.went_backward()
    assert (by_hand.done, with_optimizer.done) == (10, 0)


def test_a_step_said_by_hand_overrides_what_was_counted():
    steps = StepCount()
    steps.updated(1)
    steps.updated(1)
    steps.said()
    steps.updated(1)
    assert (steps.done, steps.now) == (1, 2)


def test_steps_that_are_counted_anew_are_looked_at_anew():
    steps = StepCount()
    steps.updated(1)
    steps.is_watched = steps.is_new = False  # no window can come any more
    steps.updated(1)
    assert not steps.is_new
    steps.said()
    assert steps.done == 1 and steps.is_new
