"""Faults of machines from logs of sensors with a GRU; each batch is padded to its longest log."""

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(24)
        self.gru = nn.GRU(24, 96, batch_first=True)
        self.head = nn.Linear(96, 5)

    def forward(self, logs):
        states, _ = self.gru(self.norm(logs))
        return self.head(states.mean(1))


def logs_of(count):
    """Most are short, one in a hundred is long."""
    lengths = torch.randint(30, 80, (count,))
    lengths[::100] = 400
    logs = torch.zeros(count, int(lengths.max()), 24)
    for row, length in enumerate(lengths.tolist()):
        logs[row, :length] = torch.randn(length, 24)
    return logs, lengths


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    logs, lengths = logs_of(1200)
    labels = torch.randint(0, 5, (len(logs),))
    net = Detector()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    order = lengths.argsort()
    for rows in order.split(20):
        batch = logs[rows, : int(lengths[rows].max())]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch), labels[rows])
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
