"""Few-shot training: very short epochs, a new loader iterator for each."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-2)
    return parser.parse_args()


class Prototype(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 20)
        )

    def forward(self, x):
        return self.body(x)


def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def main():
    args = parse()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    shots = TensorDataset(torch.randn(8 * 32, 1024), torch.randint(0, 20, (8 * 32,)))
    loader = DataLoader(
        shots,
        batch_size=32,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=False,
    )
    model = Prototype()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train_epoch(model, loader, optimizer)
        if epoch % 5 == 0:
            print("epoch", epoch)


if __name__ == "__main__":
    main()
