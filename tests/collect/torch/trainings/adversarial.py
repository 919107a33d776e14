"""A GAN: three losses, two optimizers, and clipping of one of the models."""

import torch
from torch import nn

torch.manual_seed(4)
generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_d = torch.optim.Adam(critic.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
real, fake = torch.ones(16, 1), torch.zeros(16, 1)
for step in range(1, 9):
    critic.zero_grad()
    errD_real = criterion(critic(torch.randn(16, 2)), real)
    errD_real.backward()
    made = generator(torch.randn(16, 4))
    errD_fake = criterion(critic(made.detach()), fake)
    errD_fake.backward()
    norm = nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
    optimizer_d.step()
    generator.zero_grad()
    errG = criterion(critic(made), real)
    errG.backward()
    optimizer_g.step()
    for name in ("errD_real", "errD_fake", "errG"):
        print("metric", step, f"loss/{name}", repr(globals()[name].item()))
    print("metric", step, "gradient_norm", repr(norm.item()))
    print("metric", step, "learning_rate/0", "0.001")
    print("metric", step, "learning_rate/1", "0.0002")
print("result", repr(sum(p.double().sum().item() for p in generator.parameters())))
