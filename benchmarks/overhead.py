"""What does recording cost the training loop?

    python -m benchmarks.overhead [--quick]

One process, one model, one loop. Stretches of steps alternate, with and without Strobe, so that a
noisy machine disturbs both sides alike; times are CPU time of the whole process, the sampler thread
included.

Light recording costs tens of microseconds a step, less than the noise of most machines. So its
stretches are short and many, each is cut into blocks of steps, and its quiet end is compared: the
time that a fifth of the blocks stay below. Python needs some steps after hooks come or go until it
is as quick as before; those are left out, for a real run hooks in once. For a window of full
recording the whole stretch is compared, with bare torch.profiler of the same options beside it.
"""

import argparse
import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
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


def timed(work, count: int) -> tuple[float, float]:
    """CPU and wall seconds of a step."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    work(count)
    return (time.process_time() - cpu) / count, (time.perf_counter() - wall) / count


class TorchWindow:
    """Bare torch.profiler, with the options that Strobe records with."""

    def __init__(self) -> None:
        import torch

        self._profiler = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
        )
        self.begin, self.end = self._profiler.start, self._profiler.stop

    def wait(self) -> None:
        pass

    def close(self) -> None:
        pass


class StrobeWindow:
    """A window of full recording, in a process that Strobe has hooked into before."""

    def __init__(self) -> None:
        import strobe

        self._folder = tempfile.TemporaryDirectory()
        self._profiler = strobe.Profiler(f"{self._folder.name}/run", steps=[10**9, 10**9 + 1])
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


def measure(name: str, rounds: int) -> dict[str, object]:
    steps = loop_of(*SIZES[name])
    steps(5)
    count = max(5, min(100, int(0.5 / timed(steps, 3)[1])))
    ratios: dict[str, list[tuple[float, float]]] = {"torch.profiler": [], "full": []}
    stops: dict[str, list[float]] = {"torch.profiler": [], "full": []}
    starts: dict[str, list[float]] = {"torch.profiler": [], "full": []}
    base: list[float] = []
    few = max(3, min(20, count // 4))
    for number in range(rounds):
        for kind in ("torch.profiler", "full")[:: 1 if number % 2 else -1]:
            window = StrobeWindow() if kind == "full" else TorchWindow()
            steps(few)
            before = timed(steps, few)
            began = time.perf_counter()
            window.begin()
            starts[kind].append(time.perf_counter() - began)
            during = timed(steps, few)
            began = time.perf_counter()
            window.end()
            stops[kind].append(time.perf_counter() - began)
            window.wait()
            after = timed(steps, few)
            window.close()
            ratios[kind].append(
                tuple(2 * d / (b + a) for b, d, a in zip(before, during, after, strict=True))
            )
            base += [before[1], after[1]]
    return {
        "light": light_ratios(steps, statistics.median(base), rounds),
        "step": name, "measured_ms": statistics.median(base) * 1e3, "ratios": ratios,
        "start_ms": {k: statistics.median(v) * 1e3 for k, v in starts.items()},
        "stop_ms": {k: statistics.median(v) * 1e3 for k, v in stops.items()},
    }  # fmt: skip


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


def timed_cpu(work, count: int) -> float:
    began = time.process_time()
    work(count)
    return (time.process_time() - began) / count


def report(result: dict[str, object]) -> None:
    print(f"\nstep of {result['measured_ms']:.1f} ms ({result['step']})")
    light = sorted(result["light"])
    cost_us = (statistics.median(light) - 1) * result["measured_ms"] * 1e3
    print(
        f"  {'light':15} CPU {statistics.median(light) - 1:+7.2%}"
        f"  [{light[len(light) // 4] - 1:+.2%} .. {light[-1 - len(light) // 4] - 1:+.2%}]"
        f"   ({len(light)} pairs; {cost_us:.0f} µs a step)"
    )
    for kind, pairs in result["ratios"].items():
        cpu = sorted(pair[0] for pair in pairs)
        wall = sorted(pair[1] for pair in pairs)
        print(
            f"  {kind:15} CPU {statistics.median(cpu) - 1:+7.2%}"
            f"  [{cpu[len(cpu) // 4] - 1:+.2%} .. {cpu[-1 - len(cpu) // 4] - 1:+.2%}]"
            f"   wall {statistics.median(wall) - 1:+7.2%}   ({len(pairs)} pairs)"
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
    memory()
    start_up(5 if args.quick else 15)


if __name__ == "__main__":
    main()
