"""A compiled network, always with the same shapes."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.first = nn.Linear(128, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, 128)

    def forward(self, x):
        x = nn.functional.silu(self.first(x))
        x = x + nn.functional.silu(self.second(x))
        return self.third(x)


torch.manual_seed(0)
torch.set_num_threads(1)
net = Net()
fast = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(200):
    x = torch.randn(256, 128)
    loss = nn.functional.mse_loss(fast(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
