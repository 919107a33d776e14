"""Model.train with graphs; a callback prints the loss, and Model.eval returns another."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Callback, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(1)
items = np.random.RandomState(0).randn(80, 8).astype(np.float32)
data = ds.NumpySlicesDataset({"x": items, "y": items[:, :1]}, shuffle=False).batch(8)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 1))


class Printing(Callback):
    def on_train_step_end(self, run_context):
        given = run_context.original_args()
        loss = given.net_outputs
        print("metric", given.cur_step_num, "loss", repr(float(loss.asnumpy())))


model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), {"mae"})
print("metric", 1, "learning_rate", repr(float(np.float32(0.01))))
model.train(2, data, callbacks=[Printing()], dataset_sink_mode=False)
for name, value in model.eval(data, dataset_sink_mode=False).items():
    print("metric", 20, f"evaluation/{name}", repr(float(value)))
print("result", repr(float(net[0].weight.asnumpy().sum())))
