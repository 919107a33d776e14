"""Three backward passes per update, in two branches of one function."""

import torch
from torch import nn

torch.manual_seed(3)
net = nn.Linear(8, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


def accumulate(step: int, is_last: bool) -> None:
    loss = nn.functional.mse_loss(net(torch.randn(16, 8)), torch.randn(16, 1)) / 3
    print("metric", step, "loss", repr(loss.item()))
    if is_last:
        loss.backward()
    else:
        loss.backward(retain_graph=True)


for step in range(1, 9):
    for micro in range(3):
        accumulate(step, micro == 2)
    optimizer.step()
    optimizer.zero_grad()
    print("metric", step, "learning_rate", "0.01")
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
