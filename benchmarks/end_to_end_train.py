"""The training that benchmarks/end_to_end.py records, with Strobe or with torch.profiler.

    python end_to_end_train.py STEPS [FIRST:END TRACE]

With a range and a file, it records those steps itself, as torch.profiler's documentation shows.
"""

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.overhead import SIZES, loop_of  # noqa: E402


def recorded(loop, steps: int, first: int, end: int, trace: str) -> None:
    loop(first - 1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profiler:
        loop(end - first)
        if end > steps:
            tell_last_step()
    profiler.export_chrome_trace(trace)
    if end <= steps:
        loop(steps - end + 1)
        tell_last_step()


def tell_last_step() -> None:
    print(f"last step {time.monotonic_ns()}", flush=True)


def main() -> None:
    loop = loop_of(*SIZES["20 ms"])
    steps = int(sys.argv[1])
    if len(sys.argv) > 2:
        first, end = map(int, sys.argv[2].split(":"))
        recorded(loop, steps, first, end, sys.argv[3])
    else:
        loop(steps)
        tell_last_step()


if __name__ == "__main__":
    main()
