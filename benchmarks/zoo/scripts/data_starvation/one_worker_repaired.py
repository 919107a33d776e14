"""Detector-like head on feature maps that come from a network disk, loaded by a worker process."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class FeatureMaps(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(0.004)  # the disk is across the network
        g = torch.Generator().manual_seed(i)
        return torch.randn(32, 14, 14, generator=g), torch.randn(4, generator=g)


def build():
    return nn.Sequential(
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 4),
    )  # fmt: skip


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loader = DataLoader(
        FeatureMaps(8 * 130),
        batch_size=8,
        num_workers=4,
        prefetch_factor=2,
    )
    for it, (maps, boxes) in enumerate(loader):
        loss = nn.functional.smooth_l1_loss(model(maps), boxes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 40 == 0:
            print(f"[{it}] {loss.item():.4f}")


main()
