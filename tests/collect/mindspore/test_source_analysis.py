"""What a function does that was compiled before recording began, without MindSpore."""

from strobe.collect.mindspore.source_analysis import optimizer_named, parts_of
from strobe.model.journal import GRAPH_BACKWARD, GRAPH_UPDATE


class Optimizer:
    pass


def after_grad():
    raise AssertionError("never called")


def is_optimizer(thing):
    return isinstance(thing, Optimizer)


def step_of(optimizer, gradient):
    def update(gradients):
        return optimizer(gradients)

    def train_step(x):
        return update(gradient(x))

    return train_step


def test_optimizer_and_gradient_are_found_in_the_functions_that_a_step_calls():
    assert parts_of(step_of(Optimizer(), after_grad), is_optimizer) == (
        GRAPH_UPDATE | GRAPH_BACKWARD
    )


def test_functions_that_are_made_again_name_the_same_optimizer():
    one, other = Optimizer(), Optimizer()
    assert optimizer_named(step_of(one, after_grad), is_optimizer) is one
    assert optimizer_named(step_of(other, after_grad), is_optimizer) is other
    assert optimizer_named(step_of(print, len), is_optimizer) is None


def test_an_evaluation_has_neither():
    assert parts_of(step_of(print, len), is_optimizer) == 0


def test_a_method_is_looked_through_with_the_attributes_of_its_object():
    class Trainer:
        def __init__(self):
            self.optimizer, self.gradient = Optimizer(), after_grad

        def step(self, x):
            return self.optimizer(self.gradient(x))

        def evaluate(self, x):
            return x

    trainer = Trainer()
    assert parts_of(trainer.step, is_optimizer) == GRAPH_UPDATE | GRAPH_BACKWARD
    assert parts_of(trainer.evaluate, is_optimizer) == 0


def test_functions_that_call_each_other_have_an_end():
    def one(x):
        return other(x)

    def other(x):
        return one(x)

    assert parts_of(one, is_optimizer) == 0
