"""Gradients of four batches for one update."""

import torch
from common import data, model
from torch.nn import functional

net = model()
optimizer = torch.optim.AdamW(net.parameters())
for number, (x, y) in enumerate(data(80), start=1):
    loss = functional.mse_loss(net(x), y) / 4
    loss.backward()
    if number % 4 == 0:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
print(loss.item())
