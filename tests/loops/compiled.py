"""torch.compile, with the full graph demanded."""

import torch
from common import data, model
from torch.nn import functional

net = model()
fast = torch.compile(net, backend="aot_eager", fullgraph=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data(20):
    optimizer.zero_grad()
    loss = functional.mse_loss(fast(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
