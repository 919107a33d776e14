"""Two networks with an optimizer each, trained in turns by cells or functions of the same name."""

import sys

import mindspore as ms
import numpy as np
from mindspore import nn

STEPS = 15


def by_cell(net, optimizer):
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    cell.set_train()
    return cell


def by_function(net, optimizer):
    loss_fn = nn.MSELoss()

    def forward(x, y):
        return loss_fn(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    @ms.jit
    def train_step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    return train_step


def main():
    ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "cells" else ms.PYNATIVE_MODE)
    ms.set_seed(1)
    make = by_cell if sys.argv[1] == "cells" else by_function
    steps = []
    for width in (16, 24):
        net = nn.SequentialCell(nn.Dense(8, width), nn.ReLU(), nn.Dense(width, 1))
        steps.append(make(net, nn.SGD(net.trainable_params(), 0.01)))
    rng = np.random.RandomState(0)
    for _ in range(STEPS):
        x = ms.Tensor(rng.randn(4, 8).astype(np.float32))
        y = ms.Tensor(rng.randn(4, 1).astype(np.float32))
        for step in steps:
            step(x, y).asnumpy()


if __name__ == "__main__":
    main()
