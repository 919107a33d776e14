import pytest

from strobe.collect.torch.untrained import untrained

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        self.head = torch.nn.Linear(2, 2)


def ids(*modules):
    return {id(parameter) for module in modules for parameter in module.parameters()}


def test_modules_that_no_optimizer_updates():
    net = Net()
    assert untrained(net, ids(net.head)) == {
        "tensors": 4, "modules": ["backbone"], "trained": ["head"]
    }  # fmt: skip


def test_a_part_of_a_module():
    net = Net()
    assert untrained(net, ids(net.head, net.backbone[1])) == {
        "tensors": 2, "modules": ["backbone.0"], "trained": ["head", "backbone.1"]
    }  # fmt: skip


def test_frozen_parameters_get_no_gradients():
    net = Net()
    net.backbone.requires_grad_(False)
    assert untrained(net, ids(net.head)) is None


def test_an_optimizer_with_copies_of_all_parameters_says_nothing():
    assert untrained(Net(), {1, 2, 3}) is None
    net = Net()
    assert untrained(net, ids(net)) is None
