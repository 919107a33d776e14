"""A compiled step as MindSpore's guide shows it; nothing reads the loss before the end."""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

STEPS = 14
ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
net = nn.SequentialCell(nn.Dense(256, 512), nn.ReLU(), nn.Dense(512, 512), nn.Dense(512, 10))
loss_of = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)


def forward(x, y):
    return loss_of(net(x), y)


take_gradient = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x, y):
    loss, gradients = take_gradient(x, y)
    optimizer(gradients)
    return loss


random = np.random.default_rng(0)
x = Tensor(random.normal(size=(512, 256)).astype(np.float32))
y = Tensor(random.integers(0, 10, 512).astype(np.int32))
for _ in range(STEPS):
    loss = train_step(x, y)
print("loss", loss)
