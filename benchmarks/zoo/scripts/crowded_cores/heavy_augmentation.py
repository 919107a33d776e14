"""Classify pictures; a worker blurs and turns each of them with numpy, well ahead of training."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, PICTURES, CLASSES = 32, 960, 10


class Pictures(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.images = rng.random((PICTURES, SIDE, SIDE), dtype=np.float32)
        self.labels = rng.integers(0, CLASSES, PICTURES)

    def __len__(self):
        return PICTURES

    def __getitem__(self, index):
        return augmented(self.images[index], index), int(self.labels[index])


def augmented(image, seed):
    """Turned by an angle of its own, and blurred by a kernel in the spectrum."""
    angle = np.random.default_rng(seed).uniform(-0.3, 0.3)
    y, x = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    turned = image[
        np.clip(np.cos(angle) * y - np.sin(angle) * x + SIDE / 2, 0, SIDE - 1).astype(int),
        np.clip(np.cos(angle) * x + np.sin(angle) * y + SIDE / 2, 0, SIDE - 1).astype(int),
    ]
    for width in (1.0, 2.0, 3.0):
        kernel = np.exp(-(x**2 + y**2) / width)
        spectrum = np.fft.fft2(turned) * np.fft.fft2(np.fft.ifftshift(kernel / kernel.sum()))
        turned = 0.7 * turned + 0.3 * np.fft.ifft2(spectrum).real
    return torch.from_numpy(turned.astype(np.float32))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(SIDE * SIDE, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
        nn.Linear(1024, CLASSES),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(
        Pictures(), batch_size=48, shuffle=True, num_workers=2, prefetch_factor=8,
        persistent_workers=True,
    )  # fmt: skip
    for _ in range(12):
        for images, labels in loader:
            for _ in range(2):  # two views of the same pictures
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
