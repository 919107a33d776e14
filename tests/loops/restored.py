"""A distributed checkpoint is restored before training and again halfway.

torch makes the state of an optimizer by stepping it once, without a forward or a backward.
"""

import torch
from common import data, model
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

net, criterion = model(), nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    optimizer.state.clear()
    get_optimizer_state_dict(net, optimizer)
    for x, y in data(10):
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
print(loss.item())
