"""What do histograms of all parameters cost? `python -m benchmarks.summary.histograms`

A model of 100 million parameters is updated once in a step of 200 ms, whose rest is a wait, as for
a device. Every tenth step is collected. Printed are the times that the training thread spends in
the collector, by the clock and by the processor, the processor's time of the reading thread, and
how far the steps of the rows are from the steps that were due. Times depend on the load of the
machine, which is printed.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch

import strobe

_FREQUENCY = 10
_STEP_S = 0.2
# Of all parameters: an embedding, and equal layers.
_EMBEDDING, _LAYERS = 0.3, 70


class Model(torch.nn.Module):
    def __init__(self, millions: float) -> None:
        super().__init__()
        count = int(millions * 1e6)
        self.embedding = torch.nn.Parameter(torch.rand(int(count * _EMBEDDING)))
        each = int(count * (1 - _EMBEDDING) / _LAYERS)
        self.layers = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.rand(each)) for _ in range(_LAYERS)]
        )


def train(model: Model, steps: int, folder: Path) -> None:
    parameters = list(model.parameters())
    data = {"histogram_regular": ".*"}
    in_step, processor = [], []
    collector = strobe.SummaryCollector(
        folder, collect_freq=_FREQUENCY, collect_specified_data=data
    )
    hooks = collector._parameters
    in_update = [0.0]
    original = hooks._update_begins

    def update_begins(*given: object) -> None:
        begun = time.perf_counter()
        original(*given)
        in_update[0] += time.perf_counter() - begun

    hooks._update_begins = update_begins  # type: ignore[method-assign]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    whole = time.process_time()
    begun = time.perf_counter()
    for _ in range(steps):
        time.sleep(_STEP_S)
        optimizer.step()  # its hook is that of every optimizer
        with torch.no_grad():
            for parameter in parameters:
                parameter[:16] += 1.0
        clock, own = time.perf_counter(), time.thread_time()
        collector.step(loss=1.0, model=model)
        in_step.append(time.perf_counter() - clock)
        processor.append(time.thread_time() - own)
    took = time.perf_counter() - begun
    # The first one begins the run.
    spent, own_spent = sum(in_step[1:]) + in_update[0], sum(processor[1:])
    collector.close()
    others = time.process_time() - whole - sum(processor)
    share = spent / ((steps - 1) * _STEP_S)
    run = collector.run_path or folder
    print(f"{steps} steps in {took:.1f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"training thread: {1e3 * spent / (steps - 1):.2f} ms per step ({share:.2%} of 200 ms), "
          f"of that {1e3 * own_spent / (steps - 1):.2f} ms on the processor")  # fmt: skip
    print(f"longest collection: {1e3 * max(in_step[1:]):.1f} ms; first step: "
          f"{1e3 * in_step[0]:.1f} ms")  # fmt: skip
    print(f"all other threads: {1e3 * others / steps:.0f} ms of the processor per step")
    with strobe.open_run(folder) as opened:
        rows = opened.run.sql("select tag, step from histograms").fetchall()
    late = [min((step - due) % _FREQUENCY for due in (0,)) for _, step in rows if step > 1]
    due = (1 + steps // _FREQUENCY) * (_LAYERS + 1)
    print(f"{len(rows)} of {due} histograms in {run}; "
          f"steps late: median {statistics.median(late)}, at most {max(late)}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--millions", type=float, default=100)
    parser.add_argument("--steps", type=int, default=41)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train(Model(args.millions), args.steps, Path(folder) / "run")


if __name__ == "__main__":
    main()
