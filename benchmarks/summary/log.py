"""What does it cost to log? `python -m benchmarks.summary.log [--rows N]`

Ten scalars per call, to Strobe, TensorBoard's SummaryWriter and W&B in offline mode: each in a
process of its own, in turns. `per call` is what the thread that logs pays; `end to end` is from the
first call until a reader has every value in columns (Strobe), or until the writer was closed (the
others, which need a reader still). A tool that is not installed is left out.

The floor is one `struct.pack_into` of the same twelve numbers into a mapped file.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

TAGS = 10
ROUNDS = 5

_LOOP = """
import json, os, sys, time
rows = int(sys.argv[1])
values = {{f"metric_{{n}}": n * 1.5 for n in range({tags})}}
{setup}
costs = []
begun = time.perf_counter()
for first in range(0, rows, 1000):
    at = time.perf_counter()
    for step in range(first, first + 1000):
        {call}
    costs.append((time.perf_counter() - at) / 1000)
{finish}
ended = time.perf_counter()
costs.sort()
print(json.dumps([costs[len(costs) // 2], ended - begun]))
"""
_TOOLS = {
    "floor": (
        "import mmap, struct\n"
        "buffer = mmap.mmap(-1, 1 << 20)\n"
        "pack = struct.Struct('<qq10d').pack_into",
        "pack(buffer, 96, step, 1, *values.values())",
        "",
    ),
    "strobe": (
        "import strobe\nstrobe.log(values, step=0)",
        "strobe.log(values, step=step)",
        "from strobe.collect.metrics import api\n"
        "run = api._home.run\n"
        "api._home.close('finished')\n"
        "opened = strobe.open_run(run)\n"
        "count = opened.run.sql('select count(*) from scalars').fetchall()[0][0]\n"
        "assert count == (rows + 1) * 10, count",
    ),
    "tensorboard": (
        "from torch.utils.tensorboard import SummaryWriter\nwriter = SummaryWriter('tb')",
        "[writer.add_scalar(tag, value, step) for tag, value in values.items()]",
        "writer.close()",
    ),
    "wandb": (
        "import wandb\nrun = wandb.init(project='p', mode='offline', dir='.')",
        "run.log(values, step=step)",
        "run.finish()",
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for tool in _TOOLS:
            # the others take minutes for what takes Strobe a second
            count = rows if tool in ("floor", "strobe") else rows // 20
            measured = _measured(tool, count)
            if measured is not None:
                found.setdefault(tool, []).append((measured[0], measured[1] / count))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; median of {ROUNDS}")
    for tool, times in found.items():
        call = statistics.median(cost for cost, _ in times)
        whole = statistics.median(cost for _, cost in times)
        print(f"{tool:12}  {call * 1e6:8.2f} µs per call of {TAGS}"
              f"  {TAGS / whole:12,.0f} scalars/s end to end")  # fmt: skip


def _measured(tool: str, rows: int) -> tuple[float, float] | None:
    setup, call, finish = _TOOLS[tool]
    script = _LOOP.format(tags=TAGS, setup=setup, call=call, finish=finish)
    with tempfile.TemporaryDirectory(prefix="strobe-log-") as folder:
        done = subprocess.run(
            [sys.executable, "-c", script, str(rows)], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "STROBE_OUTPUT": "out", "WANDB_SILENT": "true"}, check=False,
        )  # fmt: skip
    if done.returncode:
        if "ModuleNotFoundError" not in done.stderr:
            print(f"{tool} failed: {done.stderr[-500:]}")
        return None
    call_s, whole_s = json.loads(done.stdout.splitlines()[-1])
    return call_s, whole_s


if __name__ == "__main__":
    main()
