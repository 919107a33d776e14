"""Pictures unpacked and turned by two worker processes, well ahead of the model."""

import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Packed(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        pictures = rng.integers(0, 64, (count, 3, 32, 32), dtype=np.uint8)
        self.packed = [zlib.compress(picture.tobytes(), 1) for picture in pictures]

    def __len__(self):
        return len(self.packed)

    def __getitem__(self, index):
        raw = np.frombuffer(zlib.decompress(self.packed[index]), dtype=np.uint8)
        picture = torch.from_numpy(raw.reshape(3, 32, 32) / np.float32(64))
        return picture.flip(2) if index % 2 else picture, index % 10


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Packed(16 * 40), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True
    )
    net = nn.Sequential(
        nn.Conv2d(3, 48, 3, padding=1), nn.ReLU(), nn.Conv2d(48, 48, 3, padding=1, stride=2),
        nn.ReLU(), nn.Conv2d(48, 64, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
