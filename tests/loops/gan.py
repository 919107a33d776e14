"""Two optimizers in one step."""

import torch
from common import data
from torch import nn

generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
to_fool = torch.optim.Adam(generator.parameters())
to_judge = torch.optim.Adam(critic.parameters())
for x, _ in data(20):
    to_judge.zero_grad()
    fake = generator(torch.randn(len(x), 4))
    loss = critic(fake.detach()).mean() - critic(x).mean()
    loss.backward()
    to_judge.step()
    to_fool.zero_grad()
    loss = -critic(generator(torch.randn(len(x), 4))).mean()
    loss.backward()
    to_fool.step()
print(loss.item())
