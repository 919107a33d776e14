"""Run a script and leave the moments of its updates: `stopwatch.py FOLDER SCRIPT ...`.

It knows nothing of Strobe, so what it measures can be held against what Strobe foretells. Beside
each moment it notes how long the training thread has been ready to run, but had no core: that is
time which the machine gave to others.
"""

import json
import os
import sys
import time
from pathlib import Path

from watching import Watch, run_as_main

moments = []


def tick():
    moments.append((time.perf_counter(), without_core_s()))


def without_core_s():
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):  # a kernel that does not tell
        return 0.0


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    Watch(on_begin=tick, on_update=tick)
    try:
        run_as_main(sys.argv[2:])
    finally:
        if len(moments) > 1:
            left = folder / f"rank_{os.environ.get('RANK', '0')}.json"
            left.write_text(json.dumps(moments))
