"""Gradients of four small batches are added up before each update."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.layers(x)


def main():
    args = parse_arguments()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(64 * 4 * 16, 512)
    loader = DataLoader(TensorDataset(x, x.roll(1, dims=1)), batch_size=64, shuffle=True)
    model = nn.Sequential(Residual(512), Residual(512), Residual(512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        for i, (a, b) in enumerate(loader, start=1):
            loss = nn.functional.mse_loss(model(a), b) / args.accumulate
            loss.backward()
            if i % args.accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(epoch, loss.item() * args.accumulate)


if __name__ == "__main__":
    main()
