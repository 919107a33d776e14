"""A deep, narrow residual network: hundreds of small parameters."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Deep(nn.Module):
    def __init__(self, width=48, depth=40):
        super().__init__()
        self.stem = nn.Linear(32, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class Experiment:
    def __init__(self):
        torch.manual_seed(4)
        torch.set_num_threads(1)
        self.net = Deep()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)
        self.x, self.y = torch.randn(256 * 40, 32), torch.randint(0, 3, (256 * 40,))

    def train(self, epochs):
        for epoch in range(epochs):
            for chosen in torch.randperm(len(self.x)).split(256):
                loss = nn.functional.cross_entropy(self.net(self.x[chosen]), self.y[chosen])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"{epoch=} {loss.item()=:.4f}")


if __name__ == "__main__":
    Experiment().train(epochs=3)
