"""Which results of a compiled program are metrics, without jax."""

from types import SimpleNamespace

import pytest

from strobe.collect.jax.metrics import JaxMetrics
from strobe.collect.jax.programs import Program
from tests.collect.arrays import JAX, Array


class Var:
    """A variable of a traced program."""


class Recorder:
    def __init__(self):
        self.problems = []

    def warn(self, source, what):
        self.problems.append((source, what))


@pytest.fixture
def metrics():
    return JaxMetrics(SimpleNamespace(inside={}, recorder=Recorder()), JAX, Array)


def ways(metrics, variables, out):
    """What is found in these results of a program with a loss, whose variable is the second."""
    traced = SimpleNamespace(
        outvars=variables, eqns=[SimpleNamespace(outvars=variables, params={}, primitive=None)]
    )
    traced.eqns[0].primitive = SimpleNamespace(name="mul")
    trace = SimpleNamespace(jaxpr=SimpleNamespace(jaxpr=traced))
    program = Program("train_step", 1)
    program.takes_gradient = True
    function = SimpleNamespace(trace=lambda *args, **kwargs: trace)
    call = SimpleNamespace(function=function, program=program, args=(), kwargs={})
    metrics.value_came(loss_fn, False, (SimpleNamespace(val=variables[1], size=1), None))
    return metrics.ways(program, call, out)


def loss_fn():
    """Never called."""


def test_a_loss_behind_a_result_that_is_no_array_is_found(metrics):
    out = object(), Array(4), Array()
    ((tag, way),) = ways(metrics, [Var(), Var(), Var()], out)
    assert tag.startswith("loss")
    assert way(out) is out[1]
    assert metrics._hooks.recorder.problems == []


def test_results_that_do_not_match_the_program_are_reported(metrics):
    assert ways(metrics, [Var(), Var(), Var()], (Array(), Array(4))) == []
    ((source, what),) = metrics._hooks.recorder.problems
    assert source == "jax"
    assert "the loss and gradient norm of train_step are not recorded" in what
