"""A residual network on vectors; a NaN was looked for last week, and found."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.relu(self.widen(self.norm(x))))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(64, 96), *[Block(96) for _ in range(12)], nn.Linear(96, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    x, y = torch.randn(64 * 64, 64), torch.randint(0, 10, (64 * 64,))
    for epoch in range(5):
        for batch, labels in zip(x.split(64), y.split(64), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
