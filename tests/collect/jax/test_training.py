"""Programs that train, told from others that carry state of their own by who takes a gradient."""

import pytest

from strobe.collect.jax.programs import Circles
from strobe.collect.jax.training import WITHOUT_GRADIENT_CALLS
from tests.collect.arrays import JAX, Array, call, program


@pytest.fixture
def circles():
    return Circles(JAX, Array)


def make(circles, name, takes_gradient):
    made = program(circles, name)
    made.takes_gradient = takes_gradient
    return made


def test_an_evaluation_that_sums_up_metrics_does_not_train(circles):
    train, evaluate = make(circles, "train", True), make(circles, "evaluate", False)
    params, sums = Array(), Array(100)
    for _ in range(4):
        params, _ = call(circles, train, (params, Array()), (Array(), Array(4)))
    for _ in range(4):
        sums = call(circles, evaluate, (params, sums, Array()), Array(100))
    assert train.trains
    assert evaluate.evaluates and not evaluate.trains


@pytest.mark.parametrize("order", ["train first", "evaluate first"])
def test_an_evaluation_that_returns_the_parameters_does_not_train(circles, order):
    """As flax.nnx.jit returns all state that it was given."""
    train, evaluate = make(circles, "train", True), make(circles, "evaluate", False)
    params, moments, sums = Array(), Array(), Array(100)
    for number in range(6):
        if number % 3 == (1 if order == "train first" else 0):
            for _ in range(2):
                params, sums = call(
                    circles, evaluate, (params, sums, Array()), (Array(), Array(100))
                )
        params, moments = call(circles, train, (params, moments, Array()), (Array(), Array()))
    assert train.trains
    assert not evaluate.trains


def test_parameters_that_an_evaluation_returns_as_they_came_are_those_of_training(circles):
    train, evaluate = make(circles, "train", True), make(circles, "evaluate", False)
    evaluate.passed = {0: 0}
    params, sums = Array(), Array(100)
    for _ in range(4):
        params = call(circles, train, (params, Array()), Array())
        params, sums = call(circles, evaluate, (params, sums, Array()), (Array(), Array(100)))
    assert train.trains
    assert evaluate.evaluates and not evaluate.trains


def test_an_update_without_a_gradient_trains_with_the_program_that_takes_it(circles):
    gradient, clip = make(circles, "gradient", True), make(circles, "clip", False)
    update, average = make(circles, "update", False), make(circles, "average", False)
    params, statistics, mean = Array(), Array(100), Array()
    for _ in range(4):
        grads, statistics = call(
            circles, gradient, (params, statistics, Array()), (Array(), Array(100))
        )
        grads = call(circles, clip, (grads,), Array())
        params = call(circles, update, (params, grads), Array())
        mean = call(circles, average, (mean, params), Array())
    assert [p.name for p in circles.programs if p.trains] == [
        "gradient", "clip", "update", "average",
    ]  # fmt: skip


def test_a_program_without_a_gradient_is_not_the_training_as_long_as_one_may_come(circles):
    evaluate, sums, params = make(circles, "evaluate", False), Array(100), Array()
    for _ in range(20):
        sums = call(circles, evaluate, (params, sums, Array()), Array(100))
    assert not evaluate.trains
    train = make(circles, "train", True)
    for _ in range(2):
        params, _ = call(circles, train, (params, Array()), (Array(), Array(4)))
    assert train.trains and not evaluate.trains


def test_a_training_without_gradients_is_believed_after_a_while(circles):
    evolve, state = make(circles, "evolve", False), Array()
    for _ in range(WITHOUT_GRADIENT_CALLS):
        assert not evolve.trains
        state, _ = call(circles, evolve, (state, Array()), (Array(), Array(4)))
    assert evolve.trains


def test_a_short_training_without_gradients_is_believed_at_its_end(circles):
    evolve, state = make(circles, "evolve", False), Array()
    for _ in range(5):
        state, _ = call(circles, evolve, (state, Array()), (Array(), Array(4)))
    assert circles.judge_finally() is evolve


def test_what_was_believed_to_train_is_an_evaluation_once_a_gradient_is_seen(circles):
    simulate, state = make(circles, "simulate", False), Array()
    for _ in range(WITHOUT_GRADIENT_CALLS):
        state, _ = call(circles, simulate, (state, Array()), (Array(), Array(4)))
    train, params = make(circles, "train", True), Array()
    for _ in range(2):
        params, _ = call(circles, train, (params, Array()), (Array(), Array(4)))
    assert train.trains and not simulate.trains


def test_a_program_that_sums_gradients_of_examples_does_not_end_steps(circles):
    """gradient(params, example) → sum(total, gradient) for each example, then update(params)."""
    gradient, add = make(circles, "gradient", True), make(circles, "add", False)
    update = make(circles, "update", False)
    params, moments = Array(), Array()
    for _ in range(3):
        total = Array()
        for _ in range(10):
            found = call(circles, gradient, (params, Array(8)), Array())
            total = call(circles, add, (total, found), Array())
        params, moments = call(circles, update, (params, moments, total), (Array(), Array()))
    assert gradient.trains and add.trains and update.trains
    assert gradient.gathers and add.gathers and not update.gathers
