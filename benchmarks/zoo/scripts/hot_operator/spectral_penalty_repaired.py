"""Autoencoder whose weights are kept well-conditioned by a penalty on their singular values."""

import argparse

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encode = nn.Linear(width, 160)
        self.decode = nn.Linear(160, width)

    def forward(self, x):
        return self.decode(torch.tanh(self.encode(x)))


def penalty(weight):
    return (weight.norm() / weight.shape[0] ** 0.5 - 1).square()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--width", type=int, default=1024)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Autoencoder(args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    batches = torch.randn(20, 512, args.width)
    for step in range(args.steps):
        x = batches[step % len(batches)]
        loss = nn.functional.mse_loss(model(x), x)
        loss = loss + 0.1 * penalty(model.encode.weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"{step:4d} {loss.item():.5f}")


if __name__ == "__main__":
    main()
