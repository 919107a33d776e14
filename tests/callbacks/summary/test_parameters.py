"""Large parameters are read between updates: no row mixes two states of one."""

import importlib
import threading
import time

import pytest

import strobe
from strobe.callbacks.summary import parameters
from strobe.callbacks.summary.destination import Destination
from strobe.callbacks.summary.parameters import ParameterHistograms
from tests.callbacks.summary.rows import rows

torch = pytest.importorskip("torch")


@pytest.fixture
def no_copies(monkeypatch):
    monkeypatch.setattr(parameters, "_COPIED_BYTES", {"cpu": 0})


class Slow:
    """A histogram that waits, in its middle, until the test says go."""

    def __init__(self, monkeypatch) -> None:
        self.began, self.go = threading.Semaphore(0), threading.Semaphore(0)
        original = parameters.torch_histogram

        def histogram(values):
            first = original(values)
            self.began.release()
            assert self.go.acquire(timeout=20)
            return {**first, "max": original(values)["max"]}

        monkeypatch.setattr(parameters, "torch_histogram", histogram)


def updated(optimizer, parameter) -> None:
    parameter.grad = torch.full_like(parameter, -1.0)
    optimizer.step()


def test_a_parameter_that_is_updated_meanwhile_is_read_again(tmp_path, monkeypatch, no_copies):
    monkeypatch.setattr(parameters, "_copied_bytes", lambda values: 1 << 20)
    monkeypatch.setattr(parameters, "_copy_small", lambda waiting: None)
    to = Destination("SummaryCollector", tmp_path / "run")
    parameter = torch.nn.Parameter(torch.zeros(1000))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    slow, taken = Slow(monkeypatch), ParameterHistograms(to)
    taken.take([("w", parameter)], 10)
    for step in (11, 12, 13):
        assert slow.began.acquire(timeout=20)
        updated(optimizer, parameter)  # the values are now 1, 2, 3
        taken.step_ended(step)
        slow.go.release()
    slow.go.release()
    taken.close()
    run = to.run
    to.close()
    # Read after steps 10 and 11 in vain; then as a copy from before the next update.
    found = rows(run, "select step, min, max from histograms")
    assert len(found) == 1
    ((step, low, high),) = found
    assert low == high == step - 10 and step in (11, 12)


def test_large_parameters_have_the_values_of_their_step(tmp_path, no_copies):
    parameter = torch.nn.Parameter(torch.zeros(50_000))
    optimizer = torch.optim.SGD([parameter], lr=1.0)

    class Model:
        def named_parameters(self):
            return [("w", parameter)]

    with strobe.SummaryCollector(tmp_path / "run", collect_freq=1) as collector:
        for step in range(1, 21):
            updated(optimizer, parameter)
            collector.step(model=Model(), step=step)
            time.sleep(0.01)  # as long as the next forward pass
        run = collector.run_path
    found = rows(run, "select step, min, max from histograms")
    assert found and all(low == high == step for step, low, high in found)


def test_the_hook_on_optimizers_ends_with_training(tmp_path):
    module = importlib.import_module("torch.optim.optimizer")
    before = dict(module._global_optimizer_pre_hooks)
    with strobe.SummaryCollector(tmp_path / "run") as collector:
        collector.step(model=torch.nn.Linear(2, 2))
        assert len(module._global_optimizer_pre_hooks) == len(before) + 1
    assert dict(module._global_optimizer_pre_hooks) == before
