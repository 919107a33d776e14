"""A compiled encoder on sentences of all lengths."""

import argparse
import random

import torch
import torch._dynamo
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, 4, 256, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        return self.head(self.layers(self.embedding(ids)).mean(dim=1))


def sentences(steps):
    rnd = random.Random(0)
    for _ in range(steps):
        length = rnd.randrange(26, 36)
        ids = torch.randint(0, 1000, (32, length))
        yield nn.functional.pad(ids, (0, 36 - length)), torch.randint(0, 2, (32,))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 64
    model = Encoder()
    fast = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (ids, labels) in enumerate(sentences(args.steps)):
        loss = nn.functional.cross_entropy(fast(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
