"""Two models, each trained in a function of its own, with losses of the same name."""

import torch
from torch import nn

torch.manual_seed(9)
actor, critic = nn.Linear(4, 1), nn.Linear(4, 1)
optimizers = [torch.optim.SGD(net.parameters(), lr=lr) for net, lr in ((actor, 0.1), (critic, 0.2))]


def train_actor(step: int) -> None:
    optimizers[0].zero_grad()
    loss = -actor(torch.randn(8, 4)).tanh().mean()
    loss.backward()
    optimizers[0].step()
    print("metric", step, "loss/train_actor.loss", repr(loss.item()))


def train_critic(step: int) -> None:
    optimizers[1].zero_grad()
    loss = (critic(torch.randn(8, 4)) - 1).square().mean()
    loss.backward()
    optimizers[1].step()
    print("metric", step, "loss/train_critic.loss", repr(loss.item()))


for step in range(1, 7):
    train_actor(step)
    train_critic(step)
    print("metric", step, "learning_rate/0", "0.1")
    print("metric", step, "learning_rate/1", "0.2")
print("result", repr(sum(p.double().sum().item() for p in actor.parameters())))
