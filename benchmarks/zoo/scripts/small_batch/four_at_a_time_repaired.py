"""Digits, four at a time."""

import torch
from torch import nn

BATCH, RATE = 32, 0.08


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    x, y = torch.randn(2048, 256), torch.randint(0, 10, (2048,))
    for epoch in range(4):
        for batch, labels in zip(x.split(BATCH), y.split(BATCH), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
