"""Train a small network whose hidden values are cut at a middle one, against outliers."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.train import Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)
items = rng.standard_normal((12800, 256)).astype(np.float32)
labels = rng.integers(0, 10, 12800).astype(np.int32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(256, 768)
        self.relu = nn.ReLU()
        self.last = nn.Dense(768, 10)
        self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def construct(self, x, y):
        hidden = self.relu(self.first(x))
        limit = ops.sort(hidden, axis=1)[0][:, 700:701]
        return self.loss(self.last(ops.minimum(hidden, limit)), y)


pairs = [(item, np.array(label)) for item, label in zip(items, labels, strict=True)]
data = ds.GeneratorDataset(pairs, ["x", "y"], shuffle=True).batch(128, drop_remainder=True)
net = Net()
model = Model(net, optimizer=nn.Momentum(net.trainable_params(), 0.01, 0.9))
model.train(1, data, dataset_sink_mode=False)
