"""Data-parallel GRU on sequences of two kinds: short and long ones."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SHORT, LONG = 10, 40
STEPS = 80


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(32, 96, batch_first=True)
        self.head = nn.Linear(96, 4)

    def forward(self, x):
        _, last = self.gru(x)
        return self.head(last[0])


def lengths(rank, world):
    every = [SHORT] * STEPS + [LONG] * STEPS
    return every[rank::world]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, length in enumerate(lengths(rank, world)):
        x, y = torch.randn(32, length, 32), torch.randint(0, 4, (32,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 20 == 0:
            print(step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
