"""DDP on two ranks, started by this script itself."""

import os
import sys

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.multiprocessing import spawn


def train(rank: int, port: str) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(rank)
    net = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    lines = []
    for step in range(1, 7):
        loss = net(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimizer.step()
        lines.append(f"metric@{rank} {step} loss {loss.item()!r}\n")
        lines.append(f"metric@{rank} {step} gradient_norm {norm.item()!r}\n")
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
    destroy_process_group()


if __name__ == "__main__":
    spawn(train, args=(sys.argv[1],), nprocs=2)
