"""Regression on spectra that the pipeline computes from signals, more than it must."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(0)
ds.config.set_seed(0)
rng = np.random.default_rng(1)
signals = rng.normal(size=(1600, 2048)).astype(np.float32)
targets = rng.normal(size=(1600, 1)).astype(np.float32)


def spectrum(signal):
    frames = np.lib.stride_tricks.sliding_window_view(signal, 256)[::32]
    power = np.abs(np.fft.rfft(frames * np.hanning(256), axis=1)) ** 2
    return np.log1p(power.mean(axis=0)).astype(np.float32)


data = ds.NumpySlicesDataset((signals, targets), ["signal", "target"], shuffle=False)
data = data.map(spectrum, input_columns="signal", num_parallel_workers=2)
data = data.batch(32, drop_remainder=True)
net = nn.SequentialCell(
    nn.Dense(129, 1536),
    nn.ReLU(),
    nn.Dense(1536, 1536),
    nn.ReLU(),
    nn.Dense(1536, 1536),
    nn.ReLU(),
    nn.Dense(1536, 1),
)
model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 1e-3, 0.9))
model.train(4, data, dataset_sink_mode=False)
