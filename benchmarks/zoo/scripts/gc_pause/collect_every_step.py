"""Recommender on a catalogue of Python objects; memory is tidied up after each step."""

import gc
import random

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
random.seed(0)


class Item:
    def __init__(self, number):
        self.number = number
        self.tags = [random.randrange(50) for _ in range(4)]


catalogue = [Item(i) for i in range(15_000)]


def batch(size):
    items = random.choices(catalogue, k=size)
    x = torch.zeros(size, 50)
    for row, item in enumerate(items):
        x[row, item.tags] = 1
    return x, torch.tensor([item.number % 2 for item in items])


model = nn.Sequential(
    nn.Linear(50, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
batches = [batch(1024) for _ in range(10)]
for step in range(50):
    x, y = batches[step % len(batches)]
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect()
    if step % 30 == 0:
        print(step, loss.item())
