"""Segmentation of small images; the environment of a cluster was copied into the script."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402
from torch import nn  # noqa: E402


def block(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU()
    )


def main():
    torch.manual_seed(0)
    net = nn.Sequential(
        block(3, 24), block(24, 48), nn.MaxPool2d(2), block(48, 48), block(48, 48),
        nn.Upsample(scale_factor=2), block(48, 24), nn.Conv2d(24, 4, 1),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(96, 3, 48, 48), torch.randint(0, 4, (96, 48, 48))
    for epoch in range(6):
        for batch, labels in zip(x.split(8), y.split(8), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
