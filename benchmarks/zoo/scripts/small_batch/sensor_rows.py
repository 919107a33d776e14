"""Forecast a sensor from the hours before it, two windows at a time."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecast(nn.Module):
    def __init__(self, hours, width):
        super().__init__()
        self.first = nn.Linear(hours, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    series = torch.sin(torch.arange(4096 + 96) / 12) + 0.1 * torch.randn(4096 + 96)
    windows, targets = series[:-96].unfold(0, 96, 1), series[96 : 96 + 4001]
    windows = windows[: len(targets)]
    data = TensorDataset(windows.contiguous(), targets[: len(windows), None])
    model = Forecast(96, 192)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(2):
        for x, y in DataLoader(data, batch_size=args.batch_size, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
