"""Clocks around the functions that Strobe hangs into: what light recording costs a loop.

What a framework computes on the thread that calls it hides what the hooks take. So every function
that has a hook has a clock around it, and another around the original inside: the difference is the
hook, together with the clocks, and the same without Strobe is taken from it. With and without run
in turns, each in a process of its own; what counts is the median of the steps. Strobe's own threads
are told beside it, in the first two seconds and after.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.overhead import thread_cpu_ns

STEPS, WARM_UP = 240, 60
EARLY_NS = 2_000_000_000


class Hooks:
    """The time spent in functions beyond that in the originals inside them."""

    def __init__(self) -> None:
        self.spent_ns = 0

    def clocked(self, inner: Any, sign: int) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter_ns()
            try:
                return inner(*args, **kwargs)
            finally:
                self.spent_ns += sign * (time.perf_counter_ns() - began)

        return call


class Stopwatch:
    """Read at the end of each step, when its loss is there."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.spent_ns: list[int] = []
        self.moments_ns: list[int] = []
        # Of Strobe's threads, by name: when training began to be recorded, early and later.
        self._threads: list[tuple[int, dict[str, int]]] = []

    def step(self) -> None:
        now_ns = time.perf_counter_ns()
        self.spent_ns.append(self._hooks.spent_ns)
        self.moments_ns.append(now_ns)
        is_early = len(self._threads) == 1 and now_ns - self._threads[0][0] >= EARLY_NS
        if len(self.moments_ns) == 10 or is_early:
            self._threads.append((now_ns, thread_cpu_ns()))

    def told(self) -> dict[str, Any]:
        self._threads.append((self.moments_ns[-1], thread_cpu_ns()))
        beside = [
            {name: (ns - before.get(name, 0)) / (now_ns - then_ns) for name, ns in after.items()}
            for (then_ns, before), (now_ns, after) in zip(
                self._threads, self._threads[1:], strict=False
            )
        ]
        return {
            "spent_us": statistics.median(_steps(self.spent_ns)) / 1e3,
            "step_ms": statistics.median(_steps(self.moments_ns)) / 1e6,
            "early": sum(beside[0].values()),
            "threads": sum(beside[-1].values()),
            "each": {name: round(100 * share, 3) for name, share in beside[0].items()},
        }


def _steps(values: list[int]) -> list[int]:
    pairs = zip(values[WARM_UP:], values[WARM_UP - 1 :], strict=False)
    return [now - before for now, before in pairs]


def clock(
    around: Callable[[Hooks, int], None], train: Callable[[Stopwatch], None], is_recorded: bool
) -> None:
    """`around` puts clocks around all that has a hook. In a process of its own: they stay."""
    hooks = Hooks()
    around(hooks, -1)
    if is_recorded:
        import strobe

        strobe.Profiler(Path(tempfile.mkdtemp()) / "hooks", light=True).start()
    around(hooks, 1)
    watch = Stopwatch(hooks)
    train(watch)
    print(json.dumps(watch.told()))


def main(module: str, description: str, ways: dict[str, str]) -> None:
    """`module` has a function `clock_hooks(way, is_recorded)`."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--only", choices=ways, help="one of the loops")
    args = parser.parse_args()
    for way in [args.only] if args.only else ways:
        turns = [(_told(module, way, True), _told(module, way, False)) for _ in range(args.repeat)]
        _report(ways[way], turns)


def _told(module: str, way: str, is_recorded: bool) -> dict[str, Any]:
    code = f"import {module} as m; m.clock_hooks({way!r}, {is_recorded})"
    answer = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout.splitlines()[-1])


def _report(loop: str, turns: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    hooks = sorted(on["spent_us"] - off["spent_us"] for on, off in turns)
    early, later = (statistics.median(on[part] for on, _ in turns) for part in ("early", "threads"))
    step_ms = statistics.median(off["step_ms"] for _, off in turns)
    inside = statistics.median(hooks)
    print(f"{loop}, step of {step_ms:.1f} ms: {inside:.0f} us a step inside the hooks "
          f"[{hooks[0]:.0f} .. {hooks[-1]:.0f}], {inside / step_ms / 10:.2f} %; Strobe's threads "
          f"{early:.2%} of a core in the first two seconds, {later:.2%} after; of a step of 20 ms "
          f"{inside / 200 + 100 * early:.2f} %, {inside / 200 + 100 * later:.2f} % after",
          flush=True)  # fmt: skip
    print(f"  threads, early, in % of a core: {[on['each'] for on, _ in turns]}", flush=True)
