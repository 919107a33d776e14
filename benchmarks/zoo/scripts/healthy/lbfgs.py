"""Fit a network with L-BFGS: every step asks for the loss several times."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)

x = torch.linspace(-3, 3, 1500).unsqueeze(1)
y = torch.sin(3 * x) * torch.exp(-x.abs())
net = nn.Sequential(nn.Linear(1, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=5, history_size=5)


def closure():
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean()
    loss.backward()
    return loss


for step in range(25):
    loss = optimizer.step(closure)
    if step % 5 == 0:
        print(f"{step:3d} {loss.item():.6f}")
