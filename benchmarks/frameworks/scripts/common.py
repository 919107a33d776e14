"""What the three trainings share: the data, the start of the model, the stopwatch."""

import json
import sys
import threading
import time
from pathlib import Path

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
        self.losses = []
        # Of every step: its length, processor time of the process, and of this thread alone.
        self.wall_ns, self.cpu_ns, self.thread_ns = [], [], []
        # Processor time of Strobe's own threads, at the middle and at the end.
        self.beside_ns = []
        self._last = self._clocks()

    def _clocks(self):
        return time.perf_counter_ns(), time.process_time_ns(), time.thread_time_ns()

    def step(self, loss):
        if len(self.losses) == STEPS // 2:
            self.beside_ns.append(_strobe_threads_ns())
        self.losses.append(float(loss).hex())  # JAX waits for it here
        clocks = self._clocks()
        for times, now, last in zip(
            (self.wall_ns, self.cpu_ns, self.thread_ns), clocks, self._last, strict=True
        ):
            times.append(now - last)
        self._last = clocks

    def write(self):
        self.beside_ns.append(_strobe_threads_ns())
        told = {name: times for name, times in vars(self).items() if not name.startswith("_")}
        with open(sys.argv[1], "w") as file:
            json.dump(told, file)


def _strobe_threads_ns():
    ours = [t.native_id for t in threading.enumerate() if t.name.startswith("strobe-")]
    stats = (Path(f"/proc/self/task/{thread}/schedstat").read_text() for thread in ours)
    return sum(int(stat.split()[0]) for stat in stats)


def uses_own_profiler():
    return sys.argv[2:] == ["profiled"]
