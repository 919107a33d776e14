"""Faults that the hooks meet at a call of a program, without jax."""

import pytest

from strobe.collect.jax import hooks as module
from strobe.collect.jax.calls import Call
from strobe.collect.jax.hooks import JaxHooks
from strobe.collect.jax.programs import Circles, Program
from tests.collect.arrays import JAX, Array


class Recorder:
    def __init__(self):
        self.problems = []

    def problem(self, source, what):
        self.problems.append((source, what))


class Evaluation:
    def trace(self, *args, **kwargs):
        raise ValueError("no such backend")


@pytest.fixture
def hooks():
    made = JaxHooks.__new__(JaxHooks)
    made.recorder, made._circles = Recorder(), Circles(JAX, Array)
    return made


def test_a_program_whose_trace_cannot_be_read_is_a_problem_of_the_run(hooks, monkeypatch):
    def passed_on(function, args, kwargs):
        return function.trace(*args, **kwargs)

    monkeypatch.setattr(module, "passed_on", passed_on)
    program = Program("evaluate", 1)
    program.takes_gradient = False
    hooks._circles.add(program)
    for _ in range(2):
        hooks._looked(program, Call(Evaluation(), program, (), {}, 0), Array())
    assert program.passed == {}
    ((source, what),) = hooks.recorder.problems
    assert source == "jax"
    assert "evaluate could not be compared" in what and "no such backend" in what
