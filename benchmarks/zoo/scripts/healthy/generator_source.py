"""Batches made on the fly by a generator: a noisy pendulum, its future to be foretold."""

import math

import torch
from torch import nn


def pendulums(batch, steps, length=64):
    time = torch.arange(length + 1) * 0.1
    for _ in range(steps):
        phase = torch.rand(batch, 1) * 2 * math.pi
        swing = torch.sin(time + phase)
        yield swing[:, :-1] + 0.01 * torch.randn(batch, length), swing[:, -1:]


class Forecaster(nn.Module):
    def __init__(self, length=64, hidden=1024):
        super().__init__()
        self.inner = nn.Linear(length, hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.outer = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.outer(torch.relu(self.middle(torch.relu(self.inner(x)))))


def train(steps=130):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Forecaster()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, (x, y) in enumerate(pendulums(128, steps)):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"{step}: {loss.item():.5f}")


train()
