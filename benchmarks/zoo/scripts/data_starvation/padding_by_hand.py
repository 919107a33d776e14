"""Sequences of different length, padded into one batch by a collate function."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(5)
        lengths = torch.randint(30, 60, (count,), generator=g).tolist()
        self.sequences = [torch.randn(n, 48, generator=g) for n in lengths]

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, index):
        return self.sequences[index], index % 4


def pad(batch):
    labels = torch.tensor([label for _, label in batch])
    longest = max(len(sequence) for sequence, _ in batch)
    width = batch[0][0].shape[1]
    rows = []
    for sequence, _ in batch:
        row = [[float(value) for value in frame] for frame in sequence.numpy()]
        row += [[0.0] * width for _ in range(longest - len(row))]
        rows.append(row)
    return torch.tensor(rows), labels


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(48, 64, batch_first=True)
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        _, last = self.inner(x)
        return self.head(last[-1])


def run(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    loader = DataLoader(
        Sequences(args.count), batch_size=16, shuffle=True, collate_fn=pad, drop_last=True
    )
    model = Encoder()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} mean loss {total / len(loader):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--count", type=int, default=640)
    run(parser.parse_args())
