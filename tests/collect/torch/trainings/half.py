"""bfloat16 autocast, with the loss in bfloat16, and several parameter groups."""

import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
groups = [{"params": net[0].parameters(), "lr": 0.01}, {"params": net[2].parameters()}]
optimizer = torch.optim.AdamW(groups, lr=0.002)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for step in range(1, 13):
    x, y = torch.randn(16, 8), torch.randn(16, 1)
    optimizer.zero_grad(set_to_none=False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (net(x) - y.bfloat16()).abs().mean()
    print("metric", step, "loss", repr(loss.item()))
    for number, group in enumerate(optimizer.param_groups):
        print("metric", step, f"learning_rate/{number}", repr(group["lr"]))
    loss.backward()
    optimizer.step()
    scheduler.step()
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
