"""Data-parallel training; rank 0 keeps the statistics."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Statistics:
    """How surprising each label was, sorted: for the plot after training."""

    def __init__(self):
        self.worst = []

    def add(self, logits, labels):
        for row, label in zip(logits.tolist(), labels.tolist()):
            ranked = sorted(enumerate(row), key=lambda pair: -pair[1])
            self.worst.append([place for place, _ in ranked].index(label))
        self.worst = sorted(self.worst)[-4096:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(2 * 256 * 40, 64), torch.randint(0, 100, (2 * 256 * 40,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=256, sampler=sampler)
    net = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(),
                      nn.Linear(384, 100))
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    statistics = Statistics()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            logits = net(x)
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if dist.get_rank() == 0:
                statistics.add(logits.detach(), y)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} worst {statistics.worst[-1]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
