"""Two networks whose work can be counted by hand: LeNet, and a residual block with strides."""

import argparse

import mindspore as ms
import numpy as np
from mindspore import nn, ops

BATCH, STEPS = 4, 12


class LeNet(nn.Cell):
    size = (1, 32, 32)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class Block(nn.Cell):
    """Two convolutions have the same input, the same stride and as many filters."""

    size = (8, 16, 16)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(8, 16, 3, stride=2, pad_mode="pad", padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, group=4)
        self.down = nn.Conv2d(8, 16, 1, stride=2)
        self.head = nn.Dense(16 * 8 * 8, 10)

    def construct(self, x):
        y = self.conv2(ops.relu(self.conv1(x))) + self.down(x)
        return self.head(y.reshape((BATCH, -1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net", choices=["lenet", "block"])
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    args = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)
    net = LeNet() if args.net == "lenet" else Block()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
    step.set_train()
    rng = np.random.RandomState(0)
    for _ in range(STEPS):
        x = ms.Tensor(rng.randn(BATCH, *net.size).astype(np.float32))
        y = ms.Tensor(rng.randint(0, 10, BATCH).astype(np.int32))
        print("loss", float(step(x, y).asnumpy()).hex(), flush=True)


if __name__ == "__main__":
    main()
