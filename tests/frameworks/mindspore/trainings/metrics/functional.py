"""A loop without graphs, with a result beside the loss, and a list of learning rates."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(1)
items = np.random.RandomState(0).randn(80, 8).astype(np.float32)
data = ds.NumpySlicesDataset({"x": items, "y": items[:, :1]}, shuffle=False).batch(8)
net, loss_fn = nn.Dense(8, 1), nn.MSELoss()
rates = [0.1 / (n + 1) for n in range(12)]
optimizer = nn.SGD(net.trainable_params(), rates)


def forward_fn(x, y):
    made = net(x)
    return loss_fn(made, y), made


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
for step, (x, y) in enumerate(data.create_tuple_iterator(), start=1):
    (loss, _), gradients = grad_fn(x, y)
    optimizer(gradients)
    print("metric", step, "loss", repr(float(loss.asnumpy())))
    print("metric", step, "learning_rate", repr(float(np.float32(rates[step - 1]))))
print("result", repr(float(net.weight.asnumpy().sum())))
