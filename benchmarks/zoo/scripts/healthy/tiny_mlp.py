"""The exclusive or, of a few noisy points: the smallest training there is."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
points = torch.rand(64, 2) * 2 - 1
target = ((points[:, 0] * points[:, 1]) > 0).float().unsqueeze(1)
model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
criterion = nn.BCEWithLogitsLoss()
for step in range(4000):
    optimizer.zero_grad()
    loss = criterion(model(points), target)
    loss.backward()
    optimizer.step()
print("loss", loss.item())
