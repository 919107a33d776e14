"""Data parallel training; one rank also keeps statistics of the weights."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_rank, init
from mindspore.train import Callback, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
init()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(0)
rng = np.random.default_rng(get_rank())
items = rng.standard_normal((1600, 128)).astype(np.float32)
labels = rng.integers(0, 10, 1600).astype(np.int32)


class Statistics(Callback):
    def on_train_step_end(self, run_context):
        step = run_context.original_args().cur_step_num
        if get_rank() == 1 and step % 1000 == 0:
            weight = net[0].weight.asnumpy()
            np.linalg.eigvalsh(weight @ weight.T)


pairs = [(item, np.array(label)) for item, label in zip(items, labels, strict=True)]
data = ds.GeneratorDataset(pairs, ["x", "y"], shuffle=False).batch(16)
net = nn.SequentialCell(
    nn.Dense(128, 512), nn.ReLU(), nn.Dense(512, 64), nn.ReLU(), nn.Dense(64, 64)
)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
model.train(1, data, callbacks=[Statistics()], dataset_sink_mode=False)
