"""Fine-tuning of the head of a pretrained network: the optimizer has the head alone."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        return self.head(self.backbone(x))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Classifier()
    net.backbone.requires_grad_(False)
    optimizer = torch.optim.SGD(net.head.parameters(), lr=0.01)
    x, y = torch.randn(256, 3, 32, 32), torch.randint(0, 10, (256,))
    for epoch in range(5):
        for batch, labels in zip(x.split(16), y.split(16), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
