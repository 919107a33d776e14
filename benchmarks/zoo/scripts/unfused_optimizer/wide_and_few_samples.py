"""Fine-tune a wide network with few samples in a batch."""

import argparse

import torch
from torch import nn


def wide(width):
    return nn.Sequential(
        nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 8)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=1536)
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = wide(args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    x = torch.randn(10, args.batch_size, args.width)
    y = torch.randint(0, 8, (10, args.batch_size))
    for step in range(args.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[step % 10]), y[step % 10])
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
