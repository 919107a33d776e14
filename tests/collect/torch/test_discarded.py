import pytest

from strobe.collect.torch.discarded import DiscardedGradients

torch = pytest.importorskip("torch")


class Pair:
    """A generator and a discriminator, each with an optimizer, as the recorder sees them."""

    def __init__(self, *, set_to_none=True):
        self.set_to_none = set_to_none
        self.known = DiscardedGradients()
        self.generator, self.discriminator = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        models = (self.generator, self.discriminator)
        self.g, self.d = (torch.optim.SGD(model.parameters(), lr=0.1) for model in models)

    def clear(self, owner):
        cleared = self.known.clearing(owner)
        owner.zero_grad(set_to_none=self.set_to_none)
        if cleared is not None:
            cleared()

    def update(self, optimizer):
        optimizer.step()
        self.known.updated(optimizer)


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("by_module", [True, False])
def test_a_generator_that_is_not_detached(set_to_none, by_module):
    pair = Pair(set_to_none=set_to_none)
    for _ in range(5):
        fake = pair.generator(torch.ones(3, 2))
        pair.clear(pair.d)
        pair.discriminator(fake).sum().backward(retain_graph=True)
        pair.update(pair.d)
        pair.clear(pair.generator if by_module else pair.g)
        pair.discriminator(fake.clone()).sum().backward()
        pair.update(pair.g)
    assert pair.known.of(pair.generator) == {"updates": 5, "discarded": 4}


@pytest.mark.parametrize("set_to_none", [True, False])
def test_ordinary_training_uses_every_gradient(set_to_none):
    pair = Pair(set_to_none=set_to_none)
    for _ in range(5):
        for _ in range(2):  # accumulated
            pair.generator(torch.ones(3, 2)).sum().backward()
        pair.update(pair.g)
        pair.clear(pair.g)
    assert pair.known.of(pair.generator) is None


def test_what_is_shared_by_optimizers_or_has_none_is_left_out():
    pair = Pair()
    assert pair.known.of(pair.generator) is None
    assert pair.known.clearing(torch.nn.ReLU()) is None
