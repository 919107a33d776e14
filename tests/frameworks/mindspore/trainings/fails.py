"""A training without graphs in which an operator fails after some steps, when nobody looks."""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
net = nn.Dense(8, 4)
optimizer = nn.SGD(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
for step in range(1, 13):
    x = Tensor(np.ones((4, 8), np.float32))
    loss, gradients = gradient(x)
    optimizer(gradients)
    if step == int(sys.argv[1]):
        ops.gather_elements(x, 0, Tensor(np.full((2, 2), 999, np.int32)))
print("after the failure", float(loss))
