"""A loop of one's own without graphs: large matrices, few operators."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)
net = nn.SequentialCell(
    nn.Dense(512, 2048), nn.ReLU(), nn.Dense(2048, 2048), nn.ReLU(), nn.Dense(2048, 16)
)
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)


def forward(x, y):
    return loss_fn(net(x), y)


gradient = ms.value_and_grad(forward, None, optimizer.parameters)
items = rng.standard_normal((10, 128, 512)).astype(np.float32)
labels = rng.integers(0, 16, (10, 128)).astype(np.int32)
for step in range(50):
    x, y = Tensor(items[step % 10]), Tensor(labels[step % 10])
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    if step % 20 == 0:
        print("loss", float(loss.asnumpy()))
