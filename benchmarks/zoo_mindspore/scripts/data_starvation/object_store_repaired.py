"""Predict from feature vectors that lie in an object store, one object an item."""

import time

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(0)


class Store:
    """Stands for a client of a store: each request takes its time to answer."""

    def __init__(self, count):
        rng = np.random.default_rng(1)
        self.objects = rng.standard_normal((count, 64)).astype(np.float32)

    def fetch(self, key):
        time.sleep(0.001)
        return self.objects[key]


class Features:
    def __init__(self, store):
        self.store = store
        self.kept = {}
        for key in range(len(store.objects)):
            self.kept[key] = store.objects[key]

    def __len__(self):
        return len(self.store.objects)

    def __getitem__(self, index):
        features = self.kept[index]
        return features, np.array(features.sum() > 0, np.int32)


data = ds.GeneratorDataset(Features(Store(1600)), ["x", "y"], shuffle=True, num_parallel_workers=1)
data = data.batch(16, drop_remainder=True)
net = nn.SequentialCell(
    nn.Dense(64, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 2)
)
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Adam(net.trainable_params(), 1e-3)


def forward(x, y):
    return loss_fn(net(x), y)


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x, y):
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    return loss


for epoch in range(2):
    for x, y in data.create_tuple_iterator(num_epochs=1):
        loss = train_step(x, y)
    print("epoch", epoch, "loss", float(loss.asnumpy()))
