"""A physics-informed network: the equation u'' = -u, learned at random points."""

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
torch.set_num_threads(1)


class Field(nn.Module):
    def __init__(self, width=512, depth=4):
        super().__init__()
        sizes = [1] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.last = nn.Linear(width, 1)

    def forward(self, t):
        for layer in self.hidden:
            t = torch.sin(layer(t))
        return self.last(t)


def residual(field, t):
    t = t.requires_grad_()
    u = field(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    return du + u


field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-3, fused=True)
for step in range(50):
    points = torch.rand(192, 1) * 6.28
    loss = residual(field, points).square().mean() + (field(torch.zeros(1, 1)) - 1).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, float(loss))
