"""A small convolutional network, told to use many threads."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 15 * 15, 10),
    )  # fmt: skip
    data = TensorDataset(torch.randn(16 * 40, 3, 32, 32), torch.randint(0, 10, (16 * 40,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
