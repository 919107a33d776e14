"""A weighted loss over the items of a batch, without graphs."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)
net = nn.SequentialCell(nn.Dense(64, 2048), nn.ReLU(), nn.Dense(2048, 1))
optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9)


def forward(x, y, weight):
    out = net(x)
    return (weight * ops.square(out - y)).mean()


gradient = ms.value_and_grad(forward, None, optimizer.parameters)
x = Tensor(rng.standard_normal((32, 64)).astype(np.float32))
y = Tensor(rng.standard_normal((32, 1)).astype(np.float32))
weight = Tensor(rng.random((32, 1)).astype(np.float32))
for _ in range(60):
    loss, gradients = gradient(x, y, weight)
    optimizer(gradients)
    float(loss.asnumpy())
