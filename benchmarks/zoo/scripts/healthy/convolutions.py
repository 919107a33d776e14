"""An ordinary convolutional network with batch norm on pictures in memory."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def stage(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(stage(3, 32), stage(32, 64), stage(64, 128))
        self.classifier = nn.Linear(128 * 16, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


images, labels = torch.randn(480, 3, 32, 32), torch.randint(0, 10, (480,))
loader = DataLoader(TensorDataset(images, labels), batch_size=24, shuffle=True)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
for epoch in range(4):
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    print(f"epoch {epoch}: {running / len(loader):.4f}")
