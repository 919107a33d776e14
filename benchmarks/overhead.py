"""What does recording cost the training loop?

    python -m benchmarks.overhead [--quick]

One process, one model, one loop. Stretches of steps alternate, with and without Strobe, so that a
noisy machine disturbs both sides alike; times are CPU time of the whole process, the sampler thread
included.

Light recording costs tens of microseconds a step, less than the noise of most machines. So its
stretches are short and many, each is cut into blocks of steps, and its quiet end is compared: the
time that a fifth of the blocks stay below. Python needs some steps after hooks come or go until it
is as quick as before; those are left out, for a real run hooks in once. What no ratio can tell for
longer steps, clocks around the hooks do. Windows of full recording are compared likewise, step by
step, with bare torch.profiler of the same options beside them; and, as torch.profiler alone tells
modules only with Python stacks, with and without modules here and there.
"""

import argparse
import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
# Width of the model, its blocks, and a batch that takes about so long on one core.
SIZES = {"2 ms": (32, 1, 4), "20 ms": (128, 4, 12), "200 ms": (256, 6, 48)}


def loop_of(width: int, blocks: int, batch: int):
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.attend = nn.MultiheadAttention(width, 4, batch_first=True)
            self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(),
                                      nn.Linear(2 * width, width))  # fmt: skip

        def forward(self, x):
            y = self.norm(x)
            x = x + self.attend(y, y, y, need_weights=False)[0]
            return x + self.feed(x)

    model = nn.Sequential(*(Block() for _ in range(blocks)), nn.Linear(width, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    criterion = nn.CrossEntropyLoss()
    samples = torch.utils.data.TensorDataset(
        torch.randn(64 * batch, 16, width), torch.randint(0, 10, (64 * batch, 16))
    )
    loader = torch.utils.data.DataLoader(samples, batch_size=batch)

    def steps(count: int) -> None:
        done = 0
        while True:
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x).flatten(0, 1), y.flatten()).backward()
                optimizer.step()
                done += 1
                if done == count:
                    return

    return steps


class TorchWindow:
    """Bare torch.profiler, with the options that Strobe records with."""

    def __init__(self, with_stack: bool = False) -> None:
        import torch

        self._profiler = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            record_shapes=True, with_stack=with_stack,
        )  # fmt: skip
        self.begin, self.end = self._profiler.start, self._profiler.stop

    def wait(self) -> None:
        pass

    def close(self) -> None:
        pass


class StrobeWindow:
    """A window of full recording, in a process that Strobe has hooked into before."""

    def __init__(self, modules: bool = True) -> None:
        import strobe

        self._folder = tempfile.TemporaryDirectory()
        self._profiler = strobe.Profiler(
            f"{self._folder.name}/run", steps=[10**9, 10**9 + 1], modules=modules
        )
        self._profiler.start()
        self._windows = self._profiler._recorder.hooks.windows
        self._windows._piece_steps = 10**9
        self._windows.at_boundary = lambda: None  # it is this benchmark that begins and ends
        self._windows._steps.is_watched = self._windows._steps.is_new = False
        self.begin, self.end = self._windows.begin, self._windows.end

    def wait(self) -> None:
        self._windows._exporter.close()
        self._windows._exporter = None

    def close(self) -> None:
        self._profiler.stop()
        self._profiler._recorder.close("finished")
        self._folder.cleanup()


WINDOWS = {
    "torch.profiler": TorchWindow,
    "full, no modules": lambda: StrobeWindow(modules=False),
    "full": StrobeWindow,
    "torch.profiler, stacks": lambda: TorchWindow(with_stack=True),
}


def measure(name: str, rounds: int) -> dict[str, object]:
    steps = loop_of(*SIZES[name])
    steps(20)
    count = max(4, min(60, int(0.5 / timed_cpu(steps, 5))))
    ratios: dict[str, list[float]] = {kind: [] for kind in WINDOWS}
    stops: dict[str, list[float]] = {kind: [] for kind in WINDOWS}
    starts: dict[str, list[float]] = {kind: [] for kind in WINDOWS}
    base: list[float] = []
    for number in range(rounds):
        for kind in list(WINDOWS)[:: 1 if number % 2 else -1]:
            window = WINDOWS[kind]()
            before = quiet_step(steps, count)
            began = time.perf_counter()
            window.begin()
            starts[kind].append(time.perf_counter() - began)
            during = quiet_step(steps, count)
            began = time.perf_counter()
            window.end()
            stops[kind].append(time.perf_counter() - began)
            window.wait()
            after = quiet_step(steps, count)
            window.close()
            ratios[kind].append(2 * during / (before + after))
            base += [before, after]
    return {
        "light": light_ratios(steps, statistics.median(base), rounds),
        "in_hooks_us": in_hooks_us(name, max(40, int(2 / statistics.median(base)))),
        "step": name, "measured_ms": statistics.median(base) * 1e3, "ratios": ratios,
        "start_ms": {k: statistics.median(v) * 1e3 for k, v in starts.items()},
        "stop_ms": {k: statistics.median(v) * 1e3 for k, v in stops.items()},
    }  # fmt: skip


def quiet_step(steps, count: int) -> float:
    """CPU seconds that a fifth of so many steps stay below; the first ones do not count."""
    gc.collect()
    steps(max(2, count // 6))
    return sorted(timed_cpu(steps, 1) for _ in range(count))[count // 5]


def light_ratios(steps, step_s: float, rounds: int) -> list[float]:
    """With light recording over without, at the quiet end of each stretch."""
    import strobe

    profiler = strobe.Profiler(Path(tempfile.mkdtemp()) / "light", light=True)
    block = max(1, int(0.01 / step_s))
    blocks = max(8, min(40, int(0.8 / (block * step_s))))
    settle = max(3, min(100, int(0.3 / step_s)))

    def quiet_end() -> float:
        steps(settle)
        times = sorted(timed_cpu(steps, block) for _ in range(blocks))
        return times[len(times) // 5]

    ratios = []
    before = quiet_end()
    for _ in range(rounds if step_s > 0.1 else 4 * rounds):
        profiler.start()
        during = quiet_end()
        profiler.stop()
        after = quiet_end()
        ratios.append(2 * during / (before + after))
        before = after
    return ratios


def in_hooks_us(name: str, count: int) -> float:
    """Time inside Strobe's hooks, a step, less what the clocks take: medians of `count` steps.

    In processes of their own, for the clocks stay. What a call of an inner module looks up is not
    in it.
    """
    with_strobe, without = (
        float(subprocess.check_output([sys.executable, "-c", "from benchmarks import overhead;"
              f"overhead.clock_hooks({name!r}, {count}, {is_recorded})"]))
        for is_recorded in (True, False)
    )  # fmt: skip
    return with_strobe - without


class Clocks:
    """Around a function of torch, and around the original that the hook in it calls."""

    def __init__(self) -> None:
        self.outer: dict[str, list[int]] = {}
        self._inner: dict[str, int] = {}

    def around_original(self, name, original):
        def call(*args, **kwargs):
            began = time.perf_counter_ns()
            try:
                return original(*args, **kwargs)
            finally:
                self._inner[name] = time.perf_counter_ns() - began

        return call

    def around_hook(self, name, hook):
        times = self.outer.setdefault(name, [])

        def call(*args, **kwargs):
            began = time.perf_counter_ns()
            try:
                return hook(*args, **kwargs)
            finally:
                times.append(time.perf_counter_ns() - began - self._inner.get(name, 0))

        return call


def clock_hooks(name: str, count: int, is_recorded: bool) -> None:
    """Print the microseconds a step that functions of torch take beyond the originals in them."""
    import torch
    from torch.optim import optimizer as optim
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    import strobe

    steps, clocks = loop_of(*SIZES[name]), Clocks()
    steps(count // 4)
    places = [(_BaseDataLoaderIter, "__next__"), (torch.autograd, "backward"),
              (optim.Optimizer, "zero_grad"),
              (torch.autograd.profiler.record_function, "__exit__")]  # fmt: skip
    for owner, what in places:
        setattr(owner, what, clocks.around_original(what, getattr(owner, what)))
    if is_recorded:
        strobe.Profiler(Path(tempfile.mkdtemp()) / "hooks", light=True).start()
    for owner, what in places:
        setattr(owner, what, clocks.around_hook(what, getattr(owner, what)))
    if is_recorded:
        calls, before_updates = vars(torch.nn.modules.module), optim._global_optimizer_pre_hooks
        for where, what in [(calls, "_strobe_began"), (calls, "_strobe_ended"),
                            *((before_updates, number) for number in before_updates)]:  # fmt: skip
            where[what] = clocks.around_hook(str(what), where[what])
    steps(count // 4)
    for times in clocks.outer.values():
        times.clear()
    steps(count)
    exits = clocks.outer["__exit__"]  # three a step, and one of them is of the update
    clocks.outer["__exit__"] = [sum(three) for three in zip(*[iter(exits)] * 3, strict=False)]
    print(sum(statistics.median(times) for times in clocks.outer.values()) / 1e3)


def timed_cpu(work, count: int) -> float:
    began = time.process_time()
    work(count)
    return (time.process_time() - began) / count


def report(result: dict[str, object]) -> None:
    print(f"\nstep of {result['measured_ms']:.1f} ms ({result['step']})")
    light = sorted(result["light"])
    print(
        f"  {'light':22} CPU {statistics.median(light) - 1:+7.2%}"
        f"  [{light[len(light) // 4] - 1:+.2%} .. {light[-1 - len(light) // 4] - 1:+.2%}]"
        f"   ({len(light)} pairs; {result['in_hooks_us']:.0f} µs a step inside the hooks,"
        f" {result['in_hooks_us'] / result['measured_ms'] / 10:.2f} %)"
    )
    for kind, found in result["ratios"].items():
        cpu = sorted(found)
        print(
            f"  {kind:22} CPU {statistics.median(cpu) - 1:+7.2%}"
            f"  [{cpu[len(cpu) // 4] - 1:+.2%} .. {cpu[-1 - len(cpu) // 4] - 1:+.2%}]"
            f"   ({len(cpu)} pairs)"
        )
    for what in ("start_ms", "stop_ms"):
        values = "  ".join(f"{k} {v:.1f} ms" for k, v in result[what].items())
        print(f"  {what[:-3]} of a window: {values}")


def memory() -> None:
    """Resident memory of the collector over many steps."""
    import strobe

    steps = loop_of(16, 1, 2)
    steps(200)
    profiler = strobe.Profiler(Path(tempfile.mkdtemp()) / "run", light=True)
    profiler.start()
    steps(500)
    before = _rss()
    steps(10_000)
    print(f"\ncollector memory over 10,000 steps: {(_rss() - before) / 1e6:+.1f} MB resident")
    profiler.stop()


def side_threads(name: str) -> None:
    """Processor time of Strobe's own threads, as part of the time: at first, and after a while."""
    import strobe

    steps = loop_of(*SIZES[name])
    steps(20)
    profiler = strobe.Profiler(Path(tempfile.mkdtemp()) / "threads", light=True)
    profiler.start()
    steps(20)
    began = time.monotonic()
    print()
    for when, after_s, length_s in (("at first", 2, 25), ("after two minutes", 125, 60)):
        while time.monotonic() - began < after_s:
            steps(1)
        before, from_s = thread_cpu_ns(), time.monotonic()
        while time.monotonic() - from_s < length_s:
            steps(1)
        length_ns = (time.monotonic() - from_s) * 1e9
        ratios = {n: (ns - before.get(n, 0)) / length_ns for n, ns in thread_cpu_ns().items()}
        each = ", ".join(f"{n} {ratio:.3%}" for n, ratio in ratios.items())
        share = sum(ratios.values())
        print(f"threads beside a step of {name}, {when}: {share:.2%} of a core ({each})")
    profiler.stop()


def thread_cpu_ns() -> dict[str, int]:
    ours = [t for t in threading.enumerate() if t.name.startswith("strobe-")]
    return {
        t.name: int(Path(f"/proc/self/task/{t.native_id}/schedstat").read_text().split()[0])
        for t in ours
    }


def _rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def start_up(repeats: int) -> None:
    """Importing and asking for help, over bare Python; the fastest of interleaved tries."""
    commands = {
        "python": [sys.executable, "-c", ""],
        "import strobe": [sys.executable, "-c", "import strobe"],
        "strobe --help": [sys.executable, "-m", "strobe", "--help"],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(repeats):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            best[name] = min(best[name], time.perf_counter() - began)
    print()
    for name in list(commands)[1:]:
        print(f"{name}: {(best[name] - best['python']) * 1e3:.0f} ms over bare Python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--size", choices=SIZES, action="append", help="only this step length")
    args = parser.parse_args()
    for name in args.size or SIZES:
        report(measure(name, rounds=4 if args.quick else 12))
    side_threads("20 ms")
    memory()
    start_up(5 if args.quick else 15)


if __name__ == "__main__":
    main()
