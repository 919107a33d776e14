"""A gradient scaler: the loss before scaling, gradients that are unscaled before clipping."""

import torch
from torch import nn

torch.manual_seed(2)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1000.0)
for step in range(1, 10):
    x, y = torch.randn(16, 8), torch.randn(16, 1)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    print("metric", step, "loss", repr(loss.item()))
    print("metric", step, "gradient_norm", repr(norm.item()))
    print("metric", step, "learning_rate", repr(0.05))
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
