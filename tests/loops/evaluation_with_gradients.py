"""An evaluation that forgot torch.no_grad()."""

import torch
from common import data, model
from torch.nn import functional

net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
held_out = data(6)
for number, (x, y) in enumerate(data(20), start=1):
    loss = functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if number % 5 == 0:
        net.eval()
        for a, b in held_out:
            functional.mse_loss(net(a), b)
        net.train()
print(loss.item())
