"""Self-attention over short sequences, the whole step compiled."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Dense(width, width) for _ in range(3))
        self.inner = nn.Dense(width, 4 * width)
        self.outer = nn.Dense(4 * width, width)
        self.relu = nn.ReLU()

    def construct(self, x):
        scores = ops.matmul(self.query(x), self.key(x).swapaxes(1, 2)) / 16.0
        x = x + ops.matmul(ops.softmax(scores, -1), self.value(x))
        return x + self.outer(self.relu(self.inner(x)))


net = nn.SequentialCell(Block(256), Block(256), nn.Dense(256, 8))
optimizer = nn.Adam(net.trainable_params(), 1e-4)


def forward(x, y):
    return ops.cross_entropy(net(x).mean(axis=1), y)


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x, y):
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    return loss


x = Tensor(rng.standard_normal((16, 32, 256)).astype(np.float32))
y = Tensor(rng.integers(0, 8, 16).astype(np.int32))
for _ in range(100):
    loss = train_step(x, y)
print("loss", float(loss.asnumpy()))
