"""A loss that contains derivatives by its input (a PINN): those are not losses."""

import torch
from torch import nn

torch.manual_seed(7)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=torch.tensor(0.01))
for step in range(1, 9):
    t = torch.rand(32, 1, requires_grad=True)
    u = net(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    losses = {"physics": ((du + u) ** 2).mean(), "start": (net(torch.zeros(1, 1)) - 1).square()}
    total = losses["physics"] + losses["start"].sum()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print("metric", step, "loss", repr(total.item()))
    print("metric", step, "learning_rate", repr(optimizer.param_groups[0]["lr"].item()))
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
