"""Batches from a generator of the script's own."""

import torch
from common import model
from torch.nn import functional


def batches(count):
    for _ in range(count):
        yield torch.randn(16, 8), torch.randn(16, 1)


net = model()
optimizer = torch.optim.RMSprop(net.parameters())
for x, y in batches(20):
    optimizer.zero_grad()
    loss = functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
