"""Bag-of-words model on a stream of lines, split and hashed while they are read."""

import random
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

WORDS = [f"word{i:05d}" for i in range(4000)]
VOCABULARY = 8192


class Lines(IterableDataset):
    def __init__(self, count):
        rnd = random.Random(11)
        self.lines = [" ".join(rnd.choices(WORDS, k=600)) for _ in range(count)]

    def encode(self, line):
        ids = [zlib.crc32(token.lower().strip().encode()) % VOCABULARY for token in line.split()]
        pairs = [zlib.crc32(f"{a}_{b}".encode()) % VOCABULARY for a, b in zip(ids, ids[1:])]
        return torch.tensor((ids + pairs)[:256]), len(ids) % 2

    def __iter__(self):
        for line in self.lines:
            yield self.encode(line)


class Classifier(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width, sparse=True)
        self.mix = nn.Sequential(nn.Linear(width, 3072), nn.ReLU(), nn.Linear(3072, width))
        self.out = nn.Linear(width, 2)

    def forward(self, ids):
        x = self.embedding(ids)
        return self.out(self.mix(x.mean(dim=1)))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Lines(16 * 100), batch_size=16)
    for step, (ids, target) in enumerate(loader, start=1):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(ids), target)
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss:.4f}")
