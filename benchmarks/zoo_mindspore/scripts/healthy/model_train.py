"""Model.train in a graph, with a pipeline that keeps up."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)
items = rng.standard_normal((6400, 256)).astype(np.float32)
labels = rng.integers(0, 10, 6400).astype(np.int32)
pairs = [(item, np.array(label)) for item, label in zip(items, labels, strict=True)]
data = ds.GeneratorDataset(pairs, ["x", "y"], shuffle=True).batch(64, drop_remainder=True)
net = nn.SequentialCell(
    nn.Dense(256, 1024), nn.ReLU(), nn.Dense(1024, 1024), nn.ReLU(), nn.Dense(1024, 10)
)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
model.train(2, data, dataset_sink_mode=False)
