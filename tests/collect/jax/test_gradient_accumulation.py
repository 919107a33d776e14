"""Programs that only gather gradients, told from those that update."""

import pytest

from strobe.collect.jax.programs import Circles
from tests.collect.arrays import JAX, Array, call, program


@pytest.fixture
def circles():
    return Circles(JAX, Array)


def gathering(circles, gradient, update, params, calls):
    """One step: the parameters after it."""
    sums = None
    for _ in range(calls):
        found = call(circles, gradient, (params, Array()), Array())
        before, sums = sums, Array()
        circles.follow((before, found), {}, sums)
    if update is not None:
        return call(circles, update, (params, sums), Array())
    new = Array()
    circles.follow((params, sums), {}, new)
    return new


@pytest.mark.parametrize("calls", [2, 8, 40])
def test_a_program_that_takes_the_same_parameters_again_only_gathers(circles, calls):
    gradient, update, params = program(circles, "gradient"), program(circles, "update"), Array()
    for _ in range(3):
        params = gathering(circles, gradient, update, params, calls)
    assert gradient.trains and gradient.gathers
    assert update.trains and not update.gathers


def test_without_accumulation_nothing_gathers(circles):
    gradient, update, params = program(circles, "gradient"), program(circles, "update"), Array()
    for _ in range(4):
        params = gathering(circles, gradient, update, params, 1)
    assert not gradient.gathers and not update.gathers


def test_what_single_operations_use_is_known_by_the_parameters(circles):
    gradient, params = program(circles, "gradient"), Array()
    params = gathering(circles, gradient, None, params, 3)
    params = gathering(circles, gradient, None, params, 1)
    assert gradient.gathers
    taken = ((params, Array()), {})
    assert [gradient.is_next_step(taken), gradient.is_next_step(taken)] == [True, False]


def test_sums_that_begin_anew_are_no_state_of_their_own(circles):
    add, update, params = program(circles, "add"), program(circles, "update"), Array()
    for _ in range(3):
        sums = Array()
        for _ in range(4):
            sums = call(circles, add, (sums, params, Array()), Array())
        params = call(circles, update, (params, sums), Array())
    assert add.gathers and not update.gathers


def test_sums_of_gradients_are_not_taken_for_a_state_before_it_is_clear(circles):
    add, params, sums = program(circles, "add"), Array(), Array()
    for _ in range(4):
        sums = call(circles, add, (sums, params, Array(50)), Array())
    assert not add.trains
    assert circles.judge_finally() is add


def test_a_state_beside_arrays_that_never_change_is_believed_after_a_while(circles):
    step, params, teacher = program(circles, "step"), Array(), Array()
    for _ in range(32):
        assert not step.trains
        params = call(circles, step, (params, teacher), Array())
    assert step.trains and not step.gathers


def test_a_batch_that_never_changes_does_not_keep_anyone_waiting(circles):
    step, params, batch = program(circles, "step"), Array(), Array(500)
    for _ in range(2):
        params = call(circles, step, (params, batch), Array())
    assert step.trains


def test_a_critic_that_is_trained_more_often_has_a_state_of_its_own(circles):
    critic, maker = program(circles, "critic"), program(circles, "maker")
    judge, hand = Array(), Array(900)
    for _ in range(3):
        for _ in range(5):
            judge = call(circles, critic, (judge, hand, Array()), Array())
        hand = call(circles, maker, (hand, judge), Array(900))
    assert critic.trains and not critic.gathers


def test_statistics_that_go_along_do_not_make_it_an_update(circles):
    gradient, update = program(circles, "gradient"), program(circles, "update")
    params, statistics = Array(), Array(100)
    for _ in range(3):
        for _ in range(4):
            grads, statistics = call(
                circles, gradient, (params, statistics, Array()), (Array(), Array(100))
            )
        params = call(circles, update, (params, grads), Array())
    assert gradient.gathers


def test_a_copy_that_is_renewed_now_and_then_leaves_it_an_update(circles):
    step, params = program(circles, "step"), Array()
    for _ in range(3):
        target = params
        for _ in range(5):
            params = call(circles, step, (params, target, Array()), Array())
    assert step.trains and not step.gathers
