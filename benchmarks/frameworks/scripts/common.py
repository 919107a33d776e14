"""What the three trainings share: the data, the start of the model, the stopwatch."""

import json
import sys
import time

import numpy as np

STEPS, BATCH, SIZES, RATE = 90, 256, (784, 1024, 1024, 10), 0.05
# Of these steps the framework's own profiler records, if it is asked to; counted from 1.
RECORDED = range(40, 50)


def batches():
    random = np.random.default_rng(0)
    x = random.normal(size=(8 * BATCH, SIZES[0])).astype(np.float32)
    y = (x[:, :10].argmax(axis=1)).astype(np.int32)
    for step in range(STEPS):
        rows = slice(step % 8 * BATCH, (step % 8 + 1) * BATCH)
        yield x[rows], y[rows]


def weights():
    """Of each layer: as many rows as go in, as many columns as come out."""
    random = np.random.default_rng(1)
    return [
        (random.normal(size=(rows, columns)) / rows**0.5).astype(np.float32)
        for rows, columns in zip(SIZES[:-1], SIZES[1:], strict=True)
    ]


class Stopwatch:
    """Read at the end of each step, when its loss is there."""

    def __init__(self):
        self.losses, self.wall_ns, self.cpu_ns = [], [], []
        self._wall, self._cpu = time.perf_counter_ns(), time.process_time_ns()

    def step(self, loss):
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        self.losses.append(float(loss).hex())
        self.wall_ns.append(wall - self._wall)
        self.cpu_ns.append(cpu - self._cpu)
        self._wall, self._cpu = wall, cpu

    def write(self):
        with open(sys.argv[1], "w") as file:
            json.dump({"losses": self.losses, "wall_ns": self.wall_ns, "cpu_ns": self.cpu_ns}, file)


def uses_own_profiler():
    return sys.argv[2:] == ["profiled"]
