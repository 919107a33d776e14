"""A cell that trains, called directly, without graphs."""

import mindspore as ms
import numpy as np
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(1)
random = np.random.RandomState(0)
net = nn.Dense(8, 1)
optimizer = nn.SGD(net.trainable_params(), 0.1)
train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
train.set_train()
for step in range(1, 11):
    x = random.randn(16, 8).astype(np.float32)
    loss = train(ms.Tensor(x), ms.Tensor(x[:, :1]))
    print("metric", step, "loss", repr(float(loss.asnumpy())))
print("metric", 1, "learning_rate", repr(float(np.float32(0.1))))
print("result", repr(float(net.weight.asnumpy().sum())))
