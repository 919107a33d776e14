"""What do automatic metrics cost a step of PyTorch?

    python -m benchmarks.summary.automatic

The calls that a step makes (a batch came, a backward pass begins, an update begins) are timed by
themselves, with the processor's caches warm, and after something else has used them, as in a real
step. The load of the machine is printed, as other programs make these times longer.
"""

import os
import statistics
import sys
import tempfile
from time import perf_counter_ns

STEPS = 2000
CACHE_BYTES = 64 << 20


def main() -> None:
    import torch

    import strobe

    torch.set_num_threads(1)
    net = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batch = [torch.zeros(16, 64), torch.zeros(16, 1)]
    with tempfile.TemporaryDirectory() as folder:
        profiler = strobe.Profiler(os.path.join(folder, "run"), light=True, sample_stacks=False)
        profiler.start()
        loss = net(batch[0]).square().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        metrics = profiler._recorder.hooks.metrics
        metrics.norms.due_ns = 1 << 62
        frame = sys._getframe()

        def measured(name: str, call) -> tuple[str, float, float]:
            return name, _median_us(call, None), _median_us(call, torch.empty(CACHE_BYTES // 4))

        rows = [
            measured("batch", lambda: metrics.batch_came(1, batch)),
            measured("loss", lambda: metrics.backward((loss,), {}, 0, frame)),
            measured("learning rate", lambda: metrics.updating(optimizer, (optimizer,), {})),
            measured("nothing", lambda: None),
        ]
        profiler.stop()
    sys.stdout.write(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians in µs\n")
    for name, warm, cold in rows:
        sys.stdout.write(f"{name:15} {warm:6.2f} warm {cold:7.2f} cold\n")


def _median_us(call, caches) -> float:
    """With an array, its elements are read before each call: they replace what the caches hold."""
    times = []
    for _ in range(STEPS if caches is None else STEPS // 10):
        if caches is not None:
            caches.sum()
        began_ns = perf_counter_ns()
        call()
        times.append(perf_counter_ns() - began_ns)
    return statistics.median(times) / 1e3


if __name__ == "__main__":
    main()
