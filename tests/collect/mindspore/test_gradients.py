"""Whose gradient is computed when, told by tensors, without MindSpore."""

import json
import sys
from types import SimpleNamespace

import pytest

from strobe.collect.mindspore.gradients import GRADIENTS_FILE, GradientCalls


class Tensor:
    """Has at most one function, called when it goes backward."""

    def __init__(self, has_gradient: bool = True):
        self.has_gradient, self.function = has_gradient, None

    def register_hook(self, function):
        if not self.has_gradient:
            raise RuntimeError("this tensor has no gradient")
        self.function = function
        return SimpleNamespace(remove=lambda: setattr(self, "function", None))

    def goes_backward(self):
        if self.function is not None:
            assert self.function("its gradient") is None  # else it would be changed


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> GradientCalls:
    monkeypatch.setitem(sys.modules, "mindspore", SimpleNamespace(Tensor=Tensor))
    made = GradientCalls(lambda: None)
    made.begin()
    return made


def written(calls: GradientCalls, folder) -> list[str]:
    calls.write(folder)
    path = folder / GRADIENTS_FILE
    return [name for name, _, _ in json.loads(path.read_text())] if path.exists() else []


def test_each_cell_has_the_time_from_its_results_gradient_to_the_next(calls, tmp_path):
    """Net: doubles what it is given, block of that, adds to it; the loss is in no cell."""
    data, doubled, result, out = Tensor(has_gradient=False), Tensor(), Tensor(), Tensor()
    calls.made((data,))
    with calls.inside("Net"):
        calls.made((doubled,))
        with calls.inside("Net.block"):
            calls.made(result)
        calls.made((out, 3))
    loss = Tensor()
    calls.made(loss)
    for tensor in (loss, out, result, doubled, data):
        tensor.goes_backward()
    assert calls.around(lambda: "gradients")() == "gradients"
    assert [each.function for each in (loss, out, result, doubled)] == [None] * 4
    assert written(calls, tmp_path) == ["Net", "Net.block", "Net"]


def test_what_an_inner_cell_returns_is_its_own_also_where_others_return_it(calls, tmp_path):
    out = Tensor()
    with calls.inside("Net"):
        with calls.inside("Net.head"):
            calls.made(out)
        calls.made(out)
    out.goes_backward()
    calls.around(lambda: None)()
    assert written(calls, tmp_path) == ["Net.head"]


def test_after_the_step_tensors_are_left_alone(calls, tmp_path):
    before, after = Tensor(), Tensor()
    with calls.inside("Net"):
        calls.made(before)
    calls.rest()
    calls.made(after)
    assert (before.function, after.function) == (None, None)
    assert written(calls, tmp_path) == []
