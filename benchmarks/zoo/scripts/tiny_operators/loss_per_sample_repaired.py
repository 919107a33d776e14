"""Metric learning: pull each sample to the centre of its class."""

import argparse

import torch
from torch import nn


def centre_loss(embeddings, labels, centres):
    return (embeddings - centres[labels]).square().sum() / len(labels)


class Embedder(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 32))
        self.centres = nn.Parameter(torch.randn(classes, 32))

    def forward(self, x):
        return self.net(x)


def batches(count, size):
    generator = torch.Generator().manual_seed(2)
    labels = torch.randint(0, 10, (8, size), generator=generator)
    pictures = torch.randn(8, size, 784, generator=generator) + labels[:, :, None] / 10
    for number in range(count):
        yield pictures[number % 8], labels[number % 8]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=160)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Embedder(10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, (x, labels) in enumerate(batches(args.steps, args.batch_size)):
        loss = centre_loss(model(x), labels, model.centres)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
