"""An LSTM that adds numbers."""

import argparse

import torch
from torch import nn


class Adder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.LSTM(2, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])


def problem(batch, length):
    values = torch.rand(batch, length, 1)
    marks = torch.zeros(batch, length, 1)
    marks[:, length // 3], marks[:, 2 * length // 3] = 1, 1
    return torch.cat([values, marks], dim=2), (values * marks).sum(dim=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=160)
    parser.add_argument("--steps", type=int, default=90)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Adder(args.hidden)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        x, y = problem(64, 30)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        if step % 30 == 0:
            print(step, f"{loss.item():.4f}")
