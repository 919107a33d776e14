"""Two optimizers in one step, and batches that no DataLoader hands out."""

import torch
from torch import nn

torch.manual_seed(0)
generator, critic = nn.Linear(4, 8), nn.Linear(8, 1)
to_fool = torch.optim.SGD(generator.parameters(), lr=0.01)
to_judge = torch.optim.SGD(critic.parameters(), lr=0.01)
for x in (torch.randn(16, 8) for _ in range(20)):
    to_judge.zero_grad()
    loss = critic(generator(torch.randn(16, 4)).detach()).mean() - critic(x).mean()
    loss.backward()
    to_judge.step()
    to_fool.zero_grad()
    loss = -critic(generator(torch.randn(16, 4))).mean()
    loss.backward()
    to_fool.step()
print(loss.item())
