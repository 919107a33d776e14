"""Segment small pictures. The network smooths its input at a higher resolution first."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Smooth(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, 3, stride=1, padding=1)


class UNetish(nn.Module):
    def __init__(self):
        super().__init__()
        self.smooth = Smooth()
        self.down = nn.Conv2d(3, 24, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(24, 48, 3, padding=1)
        self.up = nn.ConvTranspose2d(48, 2, 2, stride=2)

    def forward(self, x):
        x = F.relu(self.down(self.smooth(x)))
        return self.up(F.relu(self.middle(x)))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    images = torch.rand(160, 3, 64, 64)
    masks = (images.mean(1) > 0.5).long()
    loader = DataLoader(TensorDataset(images, masks), batch_size=16, shuffle=True)
    net = UNetish()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(5):
        for image, mask in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(image), mask)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} {loss.item():.4f}")


if __name__ == "__main__":
    main()
