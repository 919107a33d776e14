"""When the norm of the gradients is computed, and when it would be wrong."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from strobe.collect.torch.gradient_norms import GradientNorms  # noqa: E402
from strobe.collect.torch.scalars import ScalarReader  # noqa: E402


@pytest.fixture
def recorded():
    return []


@pytest.fixture
def norms(recorded):
    metrics = SimpleNamespace(scalars=lambda values, *_: recorded.extend(values.values()))
    windows = SimpleNamespace(is_recording=False, has_others=False)
    hooks = SimpleNamespace(
        recorder=SimpleNamespace(metrics=metrics), windows=windows, has_exchange=False
    )
    return GradientNorms(hooks, torch, ScalarReader(torch))


def optimizer_with(*gradients):
    parameters = []
    for gradient in gradients:
        parameters.append(torch.zeros(gradient.shape, dtype=gradient.dtype, requires_grad=True))
        parameters[-1].grad = gradient
    return torch.optim.SGD(parameters, lr=0.1)


def test_it_is_the_number_that_torch_computes(norms, recorded):
    torch.manual_seed(0)
    optimizer = optimizer_with(torch.randn(300), torch.randn(7, 5), torch.randn(40).double())
    norms.measure(optimizer, 0)
    parameters = optimizer.param_groups[0]["params"]
    assert recorded == [torch.nn.utils.clip_grad_norm_(parameters, 1e9).item()]


def test_it_waits_until_it_may_cost_as_much_again(norms):
    before_ns = norms.due_ns
    norms.measure(optimizer_with(torch.ones(3)), 0)
    assert norms.due_ns != before_ns


@pytest.mark.parametrize("gradient", [
    torch.sparse_coo_tensor([[0]], [1.0], (3,), check_invariants=True),
    torch.ones(3, dtype=torch.complex64),
])  # fmt: skip
def test_other_gradients_are_left_out(norms, recorded, gradient):
    norms.measure(optimizer_with(torch.ones(2), gradient), 0)
    assert recorded == []


def test_gradients_that_the_update_unscales_are_left_out(norms, recorded):
    optimizer = optimizer_with(torch.ones(3))
    optimizer.grad_scale = torch.tensor(2.0)
    norms.measure(optimizer, 0)
    assert recorded == []


def test_nothing_is_computed_inside_a_window(norms, recorded):
    norms._hooks.windows.is_recording = True
    norms.measure(optimizer_with(torch.ones(3)), 0)
    assert recorded == []


def test_nothing_is_computed_where_the_script_does(norms, recorded):
    norms.is_known = True
    norms.measure(optimizer_with(torch.ones(3)), 0)
    assert recorded == []


def test_several_optimizers_have_turns(norms, recorded):
    optimizers = [optimizer_with(torch.ones(1)), optimizer_with(torch.full((1,), 2.0))]
    for _ in range(3):
        for number, optimizer in enumerate(optimizers):
            norms.measure(optimizer, number, 2)
    norms.measure(optimizers[0], 0, 2)
    for _ in range(20):  # the other one has no more updates
        norms.measure(optimizers[0], 0, 2)
    assert recorded == [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 1.0]
