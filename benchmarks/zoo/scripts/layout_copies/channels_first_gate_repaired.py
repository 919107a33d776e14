"""A gated network on signals of shape (batch, time, channels)."""

import torch
from torch import nn


class Gate(nn.Module):
    """Scales and shifts every channel."""

    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return torch.addcmul(self.shift, x, self.scale)


class Net(nn.Module):
    def __init__(self, channels=192, depth=4):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers.append(Gate(channels))
            self.layers.append(nn.LayerNorm(channels))
        self.mix = nn.Linear(channels, channels)
        self.head = nn.Linear(channels, 6)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(torch.relu(self.mix(x)).mean(dim=1))


def stream(steps, batch):
    g = torch.Generator().manual_seed(9)
    signals = torch.randn(20, batch, 64, 192, generator=g)
    labels = torch.randint(0, 6, (20, batch), generator=g)
    for step in range(steps):
        yield signals[step % 20], labels[step % 20]


torch.manual_seed(0)
torch.set_num_threads(1)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.02)
for step, (x, y) in enumerate(stream(80, 32)):
    loss = nn.functional.cross_entropy(net(x), y)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    if step % 30 == 0:
        print(step, loss.item())
