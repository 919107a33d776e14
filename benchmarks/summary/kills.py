"""Is anything lost to kill -9? `python -m benchmarks.summary.kills [--kills N]`

A process logs as fast as it can, and writes the number of its last call to shared memory. It is
killed at a random moment; then its run must open and hold every call that had returned, and the
lineage that was logged first.
"""

import argparse
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import strobe

SCRIPT = """
import mmap, os, strobe
progress = memoryview(mmap.mmap(os.open("progress", os.O_RDWR), 16)).cast("q")
strobe.log_lineage({"data": "v1"})
step = 0
while True:
    step += 1
    strobe.log({"a": step, "b": -step}, step=step)
    progress[0] = step
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    kills = parser.parse_args().kills
    chance = random.Random(7)
    lost, without_lineage, unreadable, rows = [], 0, 0, 0
    for number in range(kills):
        with tempfile.TemporaryDirectory(prefix="strobe-kill-") as name:
            folder = Path(name)
            done, lived_s = _killed(folder, chance.uniform(0.0, 0.6))
            if done == 0:
                continue
            try:
                with strobe.open_run(folder / "out") as opened:
                    sql = "select count(*) from scalars where tag = 'a'"
                    ((count,),) = opened.run.sql(sql).fetchall()
                    lineage = opened.run.sql("select name, value from lineage").fetchall()
            except strobe.StrobeError as error:
                unreadable += 1
                print(f"kill {number}: {error}")
                continue
            rows += count
            without_lineage += lineage != [("data", "v1")] and lived_s > 0.1
            lost.append(max(0, done - count) * lived_s / done)
    print(f"{len(lost)} runs opened, {unreadable} did not; {rows:,} calls in all")
    print(f"lost: {sum(time > 0 for time in lost)} runs, {max(lost) * 1e3:.1f} ms at most; "
          f"lineage missing after 100 ms: {without_lineage}")  # fmt: skip


def _killed(folder: Path, after_s: float) -> tuple[int, float]:
    """How many calls had returned, and how long it had logged."""
    (folder / "progress").write_bytes(bytes(16))
    with open(folder / "progress", "r+b") as file:
        progress = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT], cwd=folder, stderr=subprocess.DEVNULL,
            env={**os.environ, "STROBE_OUTPUT": "out"},
        )  # fmt: skip
        while not progress[0] and process.poll() is None:
            time.sleep(0.001)
        begun = time.monotonic()
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        return progress[0], time.monotonic() - begun


if __name__ == "__main__":
    main()
