"""Classify sequences of many lengths with a small recurrent-free model."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dense(32, 256)
        self.outer = nn.Dense(256, 4)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.outer(self.relu(self.inner(x)).mean(axis=1))


net = Net()
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)


def forward(x, y):
    return loss_fn(net(x), y)


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x, y):
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    return loss


LONGEST = 120
for _ in range(60):
    length = LONGEST  # padded to the longest
    x = Tensor(rng.standard_normal((64, length, 32)).astype(np.float32))
    y = Tensor(rng.integers(0, 4, 64).astype(np.int32))
    loss = train_step(x, y)
print("loss", float(loss.asnumpy()))
