"""Denoising network; the losses are kept to draw a curve afterwards."""

import argparse

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 1)
        self.last = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = torch.relu(self.second(h) + h)
        return x - self.last(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Denoiser()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clean = torch.rand(4, 1, 64, 64)
    curve, outputs = [], []
    for step in range(args.steps):
        noisy = clean + 0.1 * torch.randn_like(clean)
        restored = model(noisy)
        loss = nn.functional.mse_loss(restored, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss)
        outputs.append(model(noisy).clamp(0, 1))
    print(f"first {curve[0]:.4f}, last {curve[-1]:.4f}, {len(outputs)} outputs")


if __name__ == "__main__":
    main()
