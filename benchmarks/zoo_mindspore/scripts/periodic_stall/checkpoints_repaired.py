"""Learn embeddings, and save them now and then."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(0)
rng = np.random.default_rng(0)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(80000, 128)
        self.mix = nn.Dense(128, 256)
        self.out = nn.Dense(256, 8)

    def construct(self, x):
        return self.out(self.mix(self.table(x)).mean(axis=1))


net = Net()
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.SGD(net.trainable_params(), 0.05)
cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
cell.set_train()
x = Tensor(rng.integers(0, 80000, (64, 16)).astype(np.int32))
y = Tensor(rng.integers(0, 8, 64).astype(np.int32))
for step in range(1, 121):
    loss = cell(x, y)
    if step % 1000 == 0:
        ms.save_checkpoint(net, "net.ckpt")
print("loss", float(loss.asnumpy()))
