"""Trains until its standard input is closed, or so many steps; they may become slower at one."""

import sys
import threading
import time

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

most, slower_from = map(int, sys.argv[1:3])
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
net = nn.Dense(8, 8)
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
gradient = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
x = Tensor(np.ones((4, 8), np.float32))
stopped = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stopped.set()), daemon=True).start()
for step in range(1, most + 1):
    if stopped.is_set():
        break
    _, gradients = gradient(x)
    optimizer(gradients)
    time.sleep(0.03 if step < slower_from else 0.15)
