"""ConvNeXt-like blocks: LayerNorm over channels between convolutions."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ChannelNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = ChannelNorm(channels)
        self.mix = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return x + torch.relu(self.mix(self.norm(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 48, 4, stride=2, padding=1), *[Block(48) for _ in range(4)],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10),
    )  # fmt: skip
    images = torch.randn(16 * 20, 3, 48, 48)
    images = images.contiguous(memory_format=torch.channels_last)
    model = model.to(memory_format=torch.channels_last)
    loader = DataLoader(TensorDataset(images, torch.randint(0, 10, (len(images),))), batch_size=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        for x, y in loader:
            x = x.contiguous(memory_format=torch.channels_last)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
