"""A compiled function that takes the gradient, updates, and returns the loss with another number.
The losses are read after training.
"""

import mindspore as ms
import numpy as np
from mindspore import nn

ms.set_device("CPU")
ms.set_seed(1)
random = np.random.RandomState(0)
net, loss_fn = nn.Dense(8, 1), nn.MSELoss()
optimizer = nn.Adam(net.trainable_params(), 0.01)


def forward_fn(x, y):
    return loss_fn(net(x), y)


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)


@ms.jit
def train_step(x, y):
    loss, gradients = grad_fn(x, y)
    optimizer(gradients)
    return x.mean(), loss


losses = []
for _ in range(10):
    x = random.randn(16, 8).astype(np.float32)
    _, loss = train_step(ms.Tensor(x), ms.Tensor(x[:, :1]))
    losses.append(loss)
for step, loss in enumerate(losses, start=1):
    print("metric", step, "loss", repr(float(loss.asnumpy())))
print("metric", 1, "learning_rate", repr(float(np.float32(0.01))))
print("result", repr(float(net.weight.asnumpy().sum())))
