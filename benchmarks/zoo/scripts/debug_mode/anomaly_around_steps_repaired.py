"""A small convolutional network."""

import torch
from torch import nn


def train_step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(640, 3, 24, 24), torch.randint(0, 10, (640,))
    for epoch in range(5):
        for batch, labels in zip(x.split(8), y.split(8), strict=True):
            loss = train_step(net, optimizer, batch, labels)
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
