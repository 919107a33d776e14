"""Classify small pictures; brightness and contrast are changed at random while loading."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(1)
images = rng.integers(0, 256, (3200, 16, 16), dtype=np.uint8)
labels = rng.integers(0, 10, 3200).astype(np.int32)


def augment(image):
    contrast, brightness = np.random.uniform(0.8, 1.2), np.random.uniform(-20, 20)
    result = np.zeros(image.shape, dtype=np.float32)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            value = contrast * float(image[y, x]) + brightness
            result[y, x] = min(255.0, max(0.0, value)) / 255.0
    return result


pairs = [(item, np.array(label)) for item, label in zip(images, labels, strict=True)]
data = ds.GeneratorDataset(pairs, ["image", "label"], shuffle=True)
data = data.map(augment, input_columns="image", num_parallel_workers=1)
data = data.batch(32, drop_remainder=True)
net = nn.SequentialCell(
    nn.Flatten(),
    nn.Dense(256, 512),
    nn.ReLU(),
    nn.Dense(512, 512),
    nn.ReLU(),
    nn.Dense(512, 10),
)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
model.train(3, data, dataset_sink_mode=False)
