"""What trains, found from the arrays that go in and out of functions; no jax is needed for that."""

import pytest

from strobe.collect.jax.programs import Circles
from tests.collect.arrays import JAX, Array, call, program


@pytest.fixture
def circles():
    return Circles(JAX, Array)


def test_a_step_whose_state_comes_back_trains(circles):
    step, state = program(circles, "step"), Array()
    for number in range(2):
        assert step.trains is False, number
        state, _ = call(circles, step, (state, Array()), (Array(), Array(4)))
    assert step.trains


def test_two_programs_in_turn_train_and_an_evaluation_does_not(circles):
    gradient, update = program(circles, "gradient"), program(circles, "update")
    evaluate, augment = program(circles, "evaluate"), program(circles, "augment")
    params = Array()
    for _ in range(3):
        batch = call(circles, augment, (Array(),), Array())
        grads = call(circles, gradient, (params, batch), Array())
        params = call(circles, update, (params, grads), Array())
        call(circles, evaluate, (params, batch), Array(4))
    assert gradient.trains and update.trains
    assert evaluate.evaluates and not evaluate.trains
    assert not augment.trains and not augment.evaluates


def test_an_update_by_single_operations_closes_the_circle(circles):
    gradient, params = program(circles, "gradient"), Array()
    for _ in range(2):
        grads = call(circles, gradient, (params, Array()), Array())
        new = Array()
        circles.follow((params, grads), {}, new)
        params = new
    assert gradient.trains


def test_a_random_key_that_comes_back_is_no_training(circles):
    draw, key = program(circles, "draw"), Array(8)
    for _ in range(3):
        key, _ = call(circles, draw, (key,), (Array(8), Array()))
    assert not draw.trains


def test_a_model_of_eight_bytes_is_believed_after_a_while(circles):
    step, state = program(circles, "step"), Array(8)
    for _ in range(64):
        state, _ = call(circles, step, (state,), (Array(8), Array(4)))
    assert step.trains


@pytest.mark.parametrize("takes_gradient", [True, False, None])
def test_a_small_model_that_ends_early_trains_if_its_gradient_is_taken(circles, takes_gradient):
    step, state = program(circles, "step"), Array(8)
    step.takes_gradient = takes_gradient
    for _ in range(5):
        state, _ = call(circles, step, (state,), (Array(8), Array(4)))
    assert not step.trains
    assert circles.judge_finally() is (step if takes_gradient else None)


def test_a_gradient_that_leads_to_no_new_arguments_is_not_a_training(circles):
    check, point = program(circles, "check"), Array()
    check.takes_gradient = True
    for _ in range(5):
        call(circles, check, (point,), Array())
    assert circles.judge_finally() is None


def test_results_that_are_no_arrays_do_not_move_the_others(circles):
    """As typed random keys, which are objects of another class."""
    train, evaluate = program(circles, "train"), program(circles, "evaluate")
    train.takes_gradient, evaluate.takes_gradient = True, False
    evaluate.passed = {0: 0, 1: 1}  # of its results: the key and the parameters
    key, params, sums = object(), Array(), Array(100)
    for _ in range(4):
        params = call(circles, train, (params, Array()), Array())
        out = (object(), Array(), Array(100))
        key, params, sums = call(circles, evaluate, (key, params, sums, Array()), out)
    assert train.trains
    assert evaluate.evaluates and not evaluate.trains


def test_another_array_at_the_same_address_is_not_taken_for_it(circles):
    step = program(circles, "step")
    for _ in range(5):
        call(circles, step, (Array(),), (Array(), Array(4)))  # freed at once: addresses come again
    assert not step.trains


def test_the_small_result_that_does_not_go_in_again_is_waited_for(circles):
    step, state = program(circles, "step"), [Array(), Array(4)]
    for _ in range(3):
        out = call(circles, step, (state,), ([Array(), Array(4)], Array(8)))
        state = out[0]
    assert step.which is not None
    assert step.which(out) is out[1]


def test_following_ends_once_all_is_known(circles):
    step, state = program(circles, "step"), Array()
    while step.looks:
        state, _ = call(circles, step, (state,), (Array(), Array(4)))
    assert not circles.is_following
