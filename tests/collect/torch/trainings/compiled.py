"""A compiled model and loss; the update is not compiled."""

import torch
from torch import nn

torch.manual_seed(8)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


@torch.compile(backend="aot_eager")
def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(net(x), y)


for step in range(1, 9):
    loss = loss_of(torch.randn(16, 8), torch.randn(16, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("metric", step, "loss", repr(loss.item()))
    print("metric", step, "learning_rate", "0.1")
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
