"""Record two samples with MindSpore on the CPU: a summary folder, and a folder of its profiler.

python tests/ingest/formats/samples/record_mindspore.py
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.profiler import ProfilerActivity, profile, schedule
from mindspore.train.summary import SummaryRecord

SAMPLES = Path(__file__).parent
STEPS = 4
SCALARS = {"loss": [2.5, 1.25, 0.625, 0.3125], "learning_rate": [0.1, 0.01, 0.001, 0.0001]}
TENSOR = [[1.0, -2.0, 3.5], [0.0, 0.25, -0.125]]


def summary() -> None:
    folder = SAMPLES / "mindspore_summary"
    shutil.rmtree(folder, ignore_errors=True)
    with SummaryRecord(str(folder / "run")) as record:
        for at in range(STEPS):
            for tag, values in SCALARS.items():
                record.add_value("scalar", tag, ms.Tensor(values[at], ms.float32))
            record.add_value(
                "tensor", "weights", ms.Tensor(np.array(TENSOR, np.float32) * (at + 1))
            )
            record.add_value("histogram", "weights", ms.Tensor(np.array(TENSOR, np.float32)))
            record.record(at + 1)
    (written,) = (folder / "run").iterdir()
    written.chmod(0o644)
    written.rename(written.with_name("events.out.events.summary.1780000000.0.host_MS"))
    truth = {
        "scalars": {
            tag: [[at + 1, float(np.float32(value))] for at, value in enumerate(values)]
            for tag, values in SCALARS.items()
        },
        "tensors": {"weights": [[at + 1, _scaled(at + 1)] for at in range(STEPS)]},
        "histogram": {"count": 6, "min": -2.0, "max": 3.5, "sum": 2.625},
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def _scaled(factor: int) -> Any:
    return (np.array(TENSOR, np.float32) * factor).tolist()


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(16, 32)
        self.relu = nn.ReLU()
        self.second = nn.Dense(32, 4)

    def construct(self, x: Any) -> Any:
        return self.second(self.relu(self.first(x)))


def profiler() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    ms.set_seed(0)
    net = Net()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    update = nn.SGD(net.trainable_params(), 0.1)
    gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, update.parameters)
    rng = np.random.RandomState(0)
    x = ms.Tensor(rng.randn(8, 16).astype(np.float32))
    y = ms.Tensor(rng.randint(0, 4, 8).astype(np.int32))
    with tempfile.TemporaryDirectory() as folder:
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=0, warmup=1, active=STEPS - 1, repeat=1),
            on_trace_ready=ms.profiler.tensorboard_trace_handler(folder),
        ) as recorder:
            for _ in range(STEPS):
                value, found = gradients(x, y)
                update(found)
                value.asnumpy()
                recorder.step()
        target = SAMPLES / "mindspore"
        shutil.rmtree(target, ignore_errors=True)
        (written,) = Path(folder).iterdir()
        target = target / "host_0_20260101000000000_ascend_ms"
        shutil.copytree(written, target, ignore=shutil.ignore_patterns("logs"))
        for path in target.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    os.environ.setdefault("GLOG_v", "3")
    summary()
    profiler()
