"""LBFGS: several backward passes inside of an update; float64."""

import torch
from torch import nn

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
net = nn.Linear(4, 1)
x, y = torch.randn(32, 4), torch.randn(32, 1)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4)
step = 0


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    print("metric", step, "loss", repr(loss.item()))
    return loss


for step in range(1, 5):
    optimizer.step(closure)
    print("metric", step, "learning_rate", "0.5")
print("result", repr(sum(p.sum().item() for p in net.parameters())))
