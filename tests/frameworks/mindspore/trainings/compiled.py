"""The operators of a compiled function, without a training."""

import json

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

import strobe

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
net = nn.SequentialCell(nn.Dense(64, 128), nn.ReLU(), nn.Dense(128, 10))


@ms.jit
def predict(x):
    return net(x)


def plain(x):
    return net(x)


found = strobe.profile_compiled(predict, Tensor(np.ones((16, 64), np.float32)), repeat=4)
try:
    strobe.profile_compiled(plain, Tensor(np.ones((16, 64), np.float32)))
except strobe.StrobeError as error:
    found["refused"] = str(error)
print(json.dumps(found))
