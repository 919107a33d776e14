"""Regression on rows that a generator pulls page by page out of a slow table."""

import time

import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)
PAGES = 130


def pages():
    """Each page is one query."""
    for number in range(PAGES):
        time.sleep(0.018)
        g = torch.Generator().manual_seed(number)
        x = torch.randn(64, 512, generator=g)
        yield x, x[:, :1].sin()


model = nn.Sequential(
    nn.Linear(512, 1536), nn.GELU(), nn.Linear(1536, 1536), nn.GELU(), nn.Linear(1536, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for i, (x, y) in enumerate(pages()):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 25 == 0:
        print(f"page {i:4d}  loss {loss.item():.5f}")
