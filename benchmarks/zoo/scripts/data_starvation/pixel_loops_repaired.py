"""Classify small pictures; brightness and contrast are changed at random while loading."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, n, side=24):
        rng = np.random.default_rng(1)
        self.images = rng.integers(0, 256, (n, side, side), dtype=np.uint8)
        self.labels = rng.integers(0, 10, n)

    def __len__(self):
        return len(self.images)

    def augment(self, image):
        contrast, brightness = random.uniform(0.8, 1.2), random.uniform(-20, 20)
        return np.clip(contrast * image.astype(np.float32) + brightness, 0, 255) / 255

    def __getitem__(self, index):
        image = self.augment(self.images[index])
        return torch.as_tensor(image, dtype=torch.float32).unsqueeze(0), int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(64 * 6 * 6, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(x.flatten(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=32)
    args = p.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Pictures(1200), batch_size=args.batch, shuffle=True, drop_last=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()
