"""Train a small classifier on records that lie in an object store."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ObjectStore:
    """Stands for a bucket: every request takes one round trip over the network."""

    def __init__(self, count, round_trip_s):
        generator = np.random.default_rng(0)
        self.blobs = [
            generator.standard_normal(768, dtype=np.float32).tobytes() for _ in range(count)
        ]
        self.round_trip_s = round_trip_s

    def get(self, key):
        time.sleep(self.round_trip_s)
        return self.blobs[key]


class Records(Dataset):
    def __init__(self, store, count):
        self.store, self.count = store, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        blob = self.store.get(index)
        features = torch.from_numpy(np.frombuffer(blob, dtype=np.float32).copy())
        return features, index % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--records", type=int, default=1600)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    records = Records(ObjectStore(args.records, round_trip_s=0.001), args.records)
    loader = DataLoader(records, batch_size=args.batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Linear(768, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        for features, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(features), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
