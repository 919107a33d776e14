"""The loss of every sample is remembered, to report how many are among the hardest tenth."""

import torch
from torch import nn


class Monitor:
    def __init__(self):
        self.limit = None

    def update(self, losses):
        now = losses.quantile(0.9).item()
        self.limit = now if self.limit is None else 0.99 * self.limit + 0.01 * now
        return sum(loss > self.limit for loss in losses.tolist())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 100))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    monitor, hard = Monitor(), 0
    for step in range(300):
        x, y = torch.randn(256, 256), torch.randint(0, 100, (256,))
        losses = nn.functional.cross_entropy(net(x), y, reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        hard += monitor.update(losses.detach())
        if step % 100 == 0:
            print(step, losses.mean().item(), hard)


if __name__ == "__main__":
    main()
