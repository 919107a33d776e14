"""What does recording cost the training loop?

    python -m benchmarks.overhead [--quick]

One process, one model, one loop. Blocks of steps alternate: without Strobe, with light recording,
with bare torch.profiler, with a window of Strobe's full recording, in an order that changes from
round to round; ratios are of neighbouring blocks, so that a noisy machine disturbs both sides
alike. CPU time of the whole process (the sampler thread included) and wall time of a step.
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


def measure(name: str, rounds: int) -> dict[str, object]:
    import torch

    import strobe

    steps = loop_of(*SIZES[name])
    steps(5)
    count = max(5, min(100, int(0.5 / timed(steps, 3)[1])))
    folder = Path(tempfile.mkdtemp(prefix="strobe-overhead-"))
    light = strobe.Profiler(folder / "light", light=True)
    ratios: dict[str, list[tuple[float, float]]] = {"light": [], "torch.profiler": [], "full": []}
    stops: dict[str, list[float]] = {"torch.profiler": [], "full": []}
    starts: dict[str, list[float]] = {"torch.profiler": [], "full": []}
    base: list[float] = []
    few = max(3, min(20, count // 4))
    for number in range(rounds):
        for kind in ("light", "torch.profiler", "full")[:: 1 if number % 2 else -1]:
            size = count if kind == "light" else few
            before = timed(steps, size)
            if kind == "light":
                light.start()
                during = timed(steps, size)
                light.stop()
            else:
                if kind == "full":
                    profiler = strobe.Profiler(folder / f"full-{number}", whole=True)
                else:
                    profiler = torch.profiler.profile(
                        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
                    )
                began = time.perf_counter()
                profiler.start()
                if kind == "full":
                    profiler._recorder.hooks.windows.begin()
                    profiler._recorder.hooks.windows._piece_steps = 10**9
                starts[kind].append(time.perf_counter() - began)
                during = timed(steps, size)
                began = time.perf_counter()
                if kind == "full":
                    profiler._recorder.hooks.windows.end()
                else:
                    profiler.stop()
                stops[kind].append(time.perf_counter() - began)
                if kind == "full":
                    profiler.stop()
                    profiler._recorder.close("finished")
            after = timed(steps, size)
            ratios[kind].append(
                tuple(2 * d / (b + a) for b, d, a in zip(before, during, after, strict=True))
            )
            base += [before[1], after[1]]
    return {
        "step": name, "measured_ms": statistics.median(base) * 1e3, "ratios": ratios,
        "start_ms": {k: statistics.median(v) * 1e3 for k, v in starts.items()},
        "stop_ms": {k: statistics.median(v) * 1e3 for k, v in stops.items()},
    }  # fmt: skip


def report(result: dict[str, object]) -> None:
    print(f"\nstep of {result['measured_ms']:.1f} ms ({result['step']})")
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
