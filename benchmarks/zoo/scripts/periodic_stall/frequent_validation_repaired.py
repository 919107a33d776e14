"""Regression with a validation pass every few steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
VALIDATE_EVERY = 100


def make(rows):
    x = torch.randn(rows, 300)
    return TensorDataset(x, x[:, :5].prod(dim=1, keepdim=True))


train_set, validation_set = make(64 * 60), make(4096)
model = nn.Sequential(
    nn.Linear(300, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def validate():
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in DataLoader(validation_set, batch_size=512):
            total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
    model.train()
    return total / len(validation_set)


step = 0
for epoch in range(3):
    for x, y in DataLoader(train_set, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        step += 1
        if step % VALIDATE_EVERY == 0:
            print(f"step {step}: validation {validate():.4f}")
