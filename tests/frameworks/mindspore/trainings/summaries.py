"""A small LeNet with a summary: `summaries.py strobe|mindspore FOLDER MODE [OPTIONS]`.

MODE is train, kill, two or bare (no summary); OPTIONS those of SummaryCollector, as JSON.
"""

import json
import os
import signal
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Model

whose, folder, mode = sys.argv[1:4]
options = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
if whose == "strobe":
    from strobe.mindspore import SummaryCollector
else:
    from mindspore import SummaryCollector

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(1)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 5, pad_mode="valid")
        self.pool = nn.MaxPool2d(4, 4)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(2 * 6 * 6, 8)
        self.fc2 = nn.Dense(8, 10)
        self.fc3 = nn.Dense(10, 10)
        self.relu = nn.ReLU()
        self.tensor = ms.ops.TensorSummary()
        self.scalar = ms.ops.ScalarSummary()

    def construct(self, x):
        x = self.flatten(self.pool(self.relu(self.conv1(x))))
        x = self.fc3(self.fc2(self.relu(self.fc1(x))))
        self.tensor("logits", x)
        self.scalar("first", x[0][0])
        return x


def rows():
    generator = np.random.RandomState(0)
    for index in range(60):
        yield generator.rand(1, 28, 28).astype(np.float32), np.array(index % 10, np.int32)


def data():
    return ds.GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(4)


class Kill(ms.Callback):
    def on_train_step_end(self, run_context):
        if run_context.original_args().cur_step_num == 12:
            os.kill(os.getpid(), signal.SIGKILL)


net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
model = Model(net, loss, optimizer, metrics={"accuracy"})
callbacks = [] if mode == "bare" else [SummaryCollector(folder, **options)]
if mode == "two":
    callbacks.append(SummaryCollector(folder, **options))
if mode == "kill":
    callbacks.append(Kill())
try:
    model.train(2, data(), callbacks=callbacks, dataset_sink_mode=False)
    if callbacks:
        model.eval(data(), callbacks=callbacks, dataset_sink_mode=False)
except ValueError as error:
    print("ValueError", "more than one" in str(error) or "SummaryCollectors" in str(error))
