"""What light recording costs three MindSpore loops, by clocks around its hooks.

    PYTHON -m benchmarks.frameworks.mindspore_hooks [--repeat N]

PYTHON has MindSpore and Strobe. MindSpore computes on the thread that calls it as well, so what
that thread takes does not tell what the hooks take. So every function that Strobe hangs into has a
clock around it, and another around the original inside: the difference is the hook, together with
the clocks, and the same without Strobe is taken from it. With and without run in turns, each in a
process of its own; what counts is the median of the steps. Strobe's own threads are told beside it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.overhead import thread_cpu_ns

WAYS = {
    "model": "Model.train with graphs",
    "pynative": "a functional loop without graphs",
    "jit": "a loop over a compiled function",
}
STEPS, WARM_UP = 240, 60
BATCH, WIDTH = 64, {"model": 1024, "pynative": 256, "jit": 1024}


class Hooks:
    """The time spent in functions beyond that in the originals inside them."""

    def __init__(self) -> None:
        self.spent_ns = 0

    def around(self, owner, name: str, sign: int) -> None:
        inner = getattr(owner, name)

        def call(*args, **kwargs):
            began = time.perf_counter_ns()
            try:
                return inner(*args, **kwargs)
            finally:
                self.spent_ns += sign * (time.perf_counter_ns() - began)

        setattr(owner, name, call)


class Stopwatch:
    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.spent_ns, self.moments_ns = [], []
        self.threads = {}

    def step(self, loss) -> None:
        float(loss.asnumpy())
        self.spent_ns.append(self._hooks.spent_ns)
        self.moments_ns.append(time.perf_counter_ns())
        if len(self.moments_ns) == WARM_UP:
            self.threads = thread_cpu_ns()

    def told(self) -> dict[str, float]:
        def steps(values):
            pairs = zip(values[WARM_UP:], values[WARM_UP - 1 :], strict=False)
            return [now - before for now, before in pairs]

        passed_ns = self.moments_ns[-1] - self.moments_ns[WARM_UP - 1]
        beside_ns = sum(thread_cpu_ns().values()) - sum(self.threads.values())
        return {
            "spent_us": statistics.median(steps(self.spent_ns)) / 1e3,
            "step_ms": statistics.median(steps(self.moments_ns)) / 1e6,
            "threads": beside_ns / passed_ns,
        }


def clock_hooks(way: str, is_recorded: bool) -> None:
    """In a process of its own, for the clocks stay."""
    hooks, places = Hooks(), _places()
    for owner, name in places:
        hooks.around(owner, name, -1)
    if is_recorded:
        import strobe

        strobe.Profiler(Path(tempfile.mkdtemp()) / "hooks", light=True).start()
    for owner, name in places:
        hooks.around(owner, name, 1)
    watch = Stopwatch(hooks)
    train(way, watch)
    print(json.dumps(watch.told()))


def train(way: str, watch: Stopwatch) -> None:
    import mindspore as ms
    from mindspore import nn
    from mindspore.train import Model

    ms.set_seed(0)
    ms.set_context(mode=ms.PYNATIVE_MODE if way == "pynative" else ms.GRAPH_MODE)
    width = WIDTH[way]
    layers = (nn.Dense(256, width), nn.ReLU(), nn.Dense(width, width), nn.ReLU())
    net = nn.SequentialCell(*layers, nn.Dense(width, 10))
    loss_fn, optimizer = nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9)
    if way == "model":
        model = Model(net, loss_fn, optimizer)
        model.train(1, _data(), callbacks=[_callback(watch)], dataset_sink_mode=False)
        return
    step = _functional(net, loss_fn, optimizer)
    step = ms.jit(step) if way == "jit" else step
    for x, y in _data().create_tuple_iterator(num_epochs=1):
        watch.step(step(x, y))


def _callback(watch: Stopwatch):
    from mindspore.train import Callback

    class Watched(Callback):
        def on_train_step_end(self, run_context):
            watch.step(run_context.original_args().net_outputs)

    return Watched()


def _functional(net, loss_fn, optimizer):
    import mindspore as ms

    def loss_of(x, y):
        return loss_fn(net(x), y)

    gradients_of = ms.value_and_grad(loss_of, None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradients_of(x, y)
        optimizer(gradients)
        return loss

    return step


def _places() -> list[tuple[object, str]]:
    from mindspore import Tensor, nn
    from mindspore.dataset.engine.iterators import Iterator

    from strobe.collect import mindspore_versions

    api = mindspore_versions.executors()
    return [
        (nn.Cell, "__call__"), (api._JitExecutor, "__call__"), (api._PyNativeExecutor, "grad"),
        *((home, "_pynative_forward_run") for home in mindspore_versions.forward_homes()),
        (Iterator, "__next__"), (Tensor, "asnumpy"),
    ]  # fmt: skip


def _data():
    import mindspore.dataset as ds
    import numpy as np

    rng = np.random.RandomState(0)
    items = [(rng.randn(256).astype(np.float32), np.array(i % 10, np.int32)) for i in range(512)]
    items *= STEPS * BATCH // len(items)
    return ds.GeneratorDataset(items, ["x", "y"], shuffle=False).batch(BATCH)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.frameworks.mindspore_hooks", description=__doc__
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--only", choices=WAYS, help="one of the loops")
    args = parser.parse_args()
    for way in [args.only] if args.only else WAYS:
        report(way, [(told(way, True), told(way, False)) for _ in range(args.repeat)])


def told(way: str, is_recorded: bool) -> dict[str, float]:
    code = (
        f"from benchmarks.frameworks import mindspore_hooks as m; m.train({way!r}, {is_recorded})"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout.splitlines()[-1])


def report(way: str, turns: list[tuple[dict[str, float], dict[str, float]]]) -> None:
    hooks = sorted(on["spent_us"] - off["spent_us"] for on, off in turns)
    threads = statistics.median(on["threads"] for on, _ in turns)
    step_ms = statistics.median(off["step_ms"] for _, off in turns)
    inside = statistics.median(hooks)
    print(f"{WAYS[way]}, step of {step_ms:.1f} ms: {inside:.0f} us a step inside the hooks "
          f"[{hooks[0]:.0f} .. {hooks[-1]:.0f}], {inside / step_ms / 10:.2f} %; Strobe's threads "
          f"{threads:.2%} of a core; of a step of 20 ms {inside / 200 + 100 * threads:.2f} %",
          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
