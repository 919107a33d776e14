"""Data parallel training of a little network, one process for each rank: `msrun ... ranks.py`."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Model

STEPS = 12

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
init()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(1)
rng = np.random.RandomState(get_rank())
items = [(rng.randn(32).astype(np.float32), np.array(i % 10, np.int32)) for i in range(STEPS * 16)]
data = ds.GeneratorDataset(items, ["x", "y"], shuffle=False).batch(16)
net = nn.SequentialCell(nn.Dense(32, 128), nn.ReLU(), nn.Dense(128, 10))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9)).train(
    1, data, dataset_sink_mode=False
)
print("rank", get_rank(), "of", get_group_size(), "done")
