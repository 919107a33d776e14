"""Small data and models for the loops: quick, seeded, one thread."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def data(batches: int, batch_size: int = 16, **options: object) -> DataLoader:
    count = batches * batch_size
    samples = TensorDataset(torch.randn(count, 8), torch.randn(count, 1))
    return DataLoader(samples, batch_size=batch_size, **options)


def model(width: int = 32) -> nn.Module:
    return nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 1))
