"""Gradients averaged over the ranks by hand, after the backward pass."""

import torch
import torch.distributed as dist
from torch import nn

DEPTH, WIDTH = 60, 64


def average_gradients(model):
    world = dist.get_world_size()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


def build():
    layers = []
    for _ in range(DEPTH):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(100):
        x = torch.randn(512, WIDTH, generator=generator)
        loss = (model(x) - x.mean(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
    if dist.get_rank() == 0:
        print("loss", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
