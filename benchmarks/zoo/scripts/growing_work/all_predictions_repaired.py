"""All predictions of the training are collected, for statistics over them."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1000))

    def forward(self, x):
        return self.layers(x)


def fit(net, inputs, labels, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    total, count = torch.zeros(1000), 0
    for epoch in range(epochs):
        for chosen in torch.randperm(len(inputs)).split(256):
            x, y = inputs[chosen], labels[chosen]
            prediction = net(x)
            loss = nn.functional.cross_entropy(prediction, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += prediction.detach().sum(dim=0)
            count += len(prediction)
        print(epoch, loss.item(), (total / count).mean().item())


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs, labels = torch.randn(256 * 30, 128), torch.randint(0, 1000, (256 * 30,))
    fit(Net(), inputs, labels, epochs=4)
