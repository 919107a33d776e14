"""A classifier of spectrograms; the thread setting comes from a script with many processes."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Linear(1024, 1536), nn.GELU(), nn.LayerNorm(1536),
        nn.Linear(1536, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 40),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(2048, 1024), torch.randint(0, 40, (2048,))
    for epoch in range(8):
        for batch, labels in zip(x.split(256), y.split(256), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
