"""A training in the words of MindSpore's documents; only the import of the profiler is ours."""

import sys
import time

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Callback, Model

way, folder = sys.argv[1:3]
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
ms.set_seed(1)
items = np.random.RandomState(0).randn(320, 32).astype(np.float32)
labels = (np.arange(320) % 10).astype(np.int32)
pairs = [(item, np.array(label)) for item, label in zip(items, labels, strict=True)]
data = ds.GeneratorDataset(pairs, ["x", "y"], shuffle=False).batch(16)
net = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 10))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))


def train(*callbacks):
    model.train(2, data, callbacks=list(callbacks), dataset_sink_mode=False)


if way == "unconditional":
    from strobe.mindspore import Profiler

    profiler = Profiler(output_path=folder, profile_memory=True, aicore_metrics=0, l2_cache=True)
    train()
    profiler.analyse()
elif way == "own callback":
    from strobe.mindspore import Profiler

    class StopAtStep(Callback):
        def __init__(self, start_step, stop_step):
            super().__init__()
            self.start_step, self.stop_step = start_step, stop_step
            self.profiler = Profiler(start_profile=False, output_path=folder)

        def on_train_step_begin(self, run_context):
            if run_context.original_args().cur_step_num == self.start_step:
                self.profiler.start()

        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == self.stop_step:
                self.profiler.stop()

        def on_train_end(self, run_context):
            self.profiler.analyse()

    train(StopAtStep(5, 9))
elif way == "compiled before":
    from strobe.mindspore import Profiler

    def forward(x, y):
        return loss(net(x), y)

    take_gradient = ms.value_and_grad(forward, None, model._optimizer.parameters)
    optimizer = model._optimizer

    @ms.jit
    def train_step(x, y):
        value, gradients = take_gradient(x, y)
        optimizer(gradients)
        return value

    profiler = Profiler(start_profile=False, output_path=folder)
    for number, (x, y) in enumerate(data.create_tuple_iterator(), start=1):
        if number == 10:
            profiler.start()
        train_step(x, y)
        if number == 15:
            profiler.stop()
    profiler.analyse()
elif way == "profile":
    from strobe.mindspore import (
        AicoreMetrics,
        ExportType,
        ProfilerActivity,
        ProfilerLevel,
        _ExperimentalConfig,
        profile,
        schedule,
        tensorboard_trace_handler,
    )

    config = _ExperimentalConfig(
        profiler_level=ProfilerLevel.Level0,
        aic_metrics=AicoreMetrics.AiCoreNone,
        l2_cache=False,
        mstx=False,
        data_simplification=False,
        export_type=[ExportType.Text],
    )

    class Steps(Callback):
        def __init__(self, profiler):
            super().__init__()
            self.profiler = profiler

        def on_train_step_end(self, run_context):
            self.profiler.step()

    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.NPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1, skip_first=2),
        on_trace_ready=tensorboard_trace_handler(folder),
        profile_memory=False,
        experimental_config=config,
    ) as profiler:
        train(Steps(profiler))
elif way == "by step":
    from strobe.mindspore import StopAtStep

    train(StopAtStep(5, 9, output_path=folder))
elif way == "monitor":
    from strobe.mindspore import ProfileMonitor

    train(ProfileMonitor(5, 9, folder, False, profile_communication=False, profiler_level=0))
elif way == "by epoch":
    from strobe.mindspore import StopAtEpoch

    train(StopAtEpoch(2, 2, output_path=folder))
elif way == "dynamic":
    import json
    import os

    from strobe.mindspore import DynamicProfilerMonitor

    class Slowly(Callback):
        """Steps as long as those of a real training: a file is read between them."""

        def on_train_step_end(self, run_context):
            time.sleep(0.05)

    os.makedirs("cfg", exist_ok=True)
    with open("cfg/profiler_config.json", "w") as file:
        json.dump({"start_step": 25, "stop_step": 28, "aicore_metrics": -1}, file)
    monitor = DynamicProfilerMonitor(cfg_path="cfg", output_path=folder, poll_interval=1)
    train(monitor, Slowly())
elif way == "environment":
    train()
elif way == "theirs too":
    profiler = ms.Profiler(output_path="theirs")
    train()
    profiler.analyse()
