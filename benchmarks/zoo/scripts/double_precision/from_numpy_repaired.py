"""House prices from a table: the features come from numpy."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Table(Dataset):
    def __init__(self, rows, columns):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(rows, columns)).astype(np.float32)
        self.y = self.x[:, :3].sum(axis=1, keepdims=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return torch.from_numpy(self.x[index]), torch.from_numpy(self.y[index])


class Regressor(nn.Module):
    def __init__(self, columns, hidden=1280):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(columns, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Table(128 * 25, args.columns), batch_size=128, shuffle=True)
    model = Regressor(args.columns)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
