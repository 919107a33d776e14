"""No clipping: the norm is computed now and then, with the number that torch computes."""

import torch
from torch import nn

torch.manual_seed(10)
net = nn.Sequential(nn.Linear(64, 512), nn.Dropout(0.1), nn.ReLU(), nn.Linear(512, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
for step in range(1, 400):
    loss = net(torch.randn(512, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    norms = [torch.linalg.vector_norm(p.grad) for p in net.parameters()]
    print("sometimes", step, "gradient_norm", repr(torch.stack(norms).norm().item()))
    optimizer.step()
    print("metric", step, "loss", repr(loss.item()))
    print("metric", step, "learning_rate", "0.001")
print("result", repr(sum(p.double().sum().item() for p in net.parameters())))
