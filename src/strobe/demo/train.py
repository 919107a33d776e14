"""Train a small convolutional network on pictures that are unpacked one by one as they are asked.

The fault: the pictures are unpacked and turned in the training process itself, so that the network
waits for them at every step. `--workers 2` lets other processes do it meanwhile.
"""

import argparse
import random
import zlib

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

SIDE = 32
CLASSES = 4


class PackedPictures(Dataset):
    """Grey pictures, kept compressed: a bright square whose corner tells the class."""

    def __init__(self, count: int) -> None:
        chance = random.Random(0)
        self.packed, self.labels = [], []
        for _ in range(count):
            label = chance.randrange(CLASSES)
            rows = [[chance.randrange(60) for _ in range(SIDE)] for _ in range(SIDE)]
            top, left = (label // 2) * SIDE // 2, (label % 2) * SIDE // 2
            for y in range(4, 12):
                for x in range(4, 12):
                    rows[top + y][left + x] = 255
            self.packed.append(zlib.compress(bytes(value for row in rows for value in row)))
            self.labels.append(label)

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        pixels = zlib.decompress(self.packed[index])
        rows = [pixels[y * SIDE : (y + 1) * SIDE] for y in range(SIDE)]
        brightness = 0.9 + 0.2 * random.random()
        picture = [[min(1.0, value / 255 * brightness) for value in row] for row in rows]
        return torch.tensor(picture).unsqueeze(0), self.labels[index]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classify = nn.Linear(16 * (SIDE // 4) ** 2, CLASSES)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.classify(self.features(pictures).flatten(1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a network this small is no quicker with more
    random.seed(0)
    pictures = PackedPictures(640)
    loader = DataLoader(
        pictures, batch_size=32, shuffle=True, num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )  # fmt: skip
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for epoch in range(1, args.epochs + 1):
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(batch), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
