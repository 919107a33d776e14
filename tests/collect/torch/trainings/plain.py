"""One loss, a schedule, clipping, and a loader whose last batch is smaller."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(44, 8), torch.randn(44, 1))
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
step = 0
for _epoch in range(3):
    for x, y in DataLoader(data, batch_size=8):
        step += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        print("metric", step, "loss", repr(loss.item()))
        print("metric", step, "learning_rate", repr(optimizer.param_groups[0]["lr"]))
        print("metric", step, "gradient_norm", repr(norm.item()))
        optimizer.step()
        scheduler.step()
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
