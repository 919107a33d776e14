"""Run a script and leave the moments at which its steps ended: `stopwatch.py FOLDER SCRIPT`.

It knows nothing of Strobe, so what it measures can be held against what Strobe foretells. A step is
one call of what trains: a cell with an optimizer in it, a compiled function, or else the optimizer.
Beside each moment stands how long the training thread has been ready to run, but had no core
because other processes had it; MindSpore's own threads do not count as others.
"""

import functools
import json
import os
import runpy
import sys
import time
from pathlib import Path

from mindspore import nn

try:
    from mindspore.graph import api
except ImportError:  # an older version
    from mindspore.common import api

moments = []
inside = [0]


def tick():
    with open("/proc/thread-self/schedstat") as file:
        without_core_s = int(file.read().split()[1]) / 1e9
    moments.append((time.perf_counter(), min(without_core_s, others_s())))


def others_s():
    """Processor time of all other processes of the machine."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, irq, softirq, stolen = map(int, file.read().split()[1:9])
    busy_s = (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK")
    return busy_s - began_busy_s - sum(os.times()[:4])


began_busy_s = 0.0
began_busy_s = others_s()


def trains(called):
    if not isinstance(called, nn.Cell):
        return True  # a compiled function
    return any(isinstance(part, nn.Optimizer) for _, part in called.cells_and_names())


def watch(owner):
    """Of calls inside each other, the outermost one that trains is the step."""
    original = owner.__call__

    @functools.wraps(original)
    def call(called, *args, **kwargs):
        if inside[0] or not trains(called):
            return original(called, *args, **kwargs)
        inside[0] += 1
        try:
            return original(called, *args, **kwargs)
        finally:
            inside[0] -= 1
            tick()

    owner.__call__ = call


if __name__ == "__main__":
    folder, script = Path(sys.argv[1]), str(Path(sys.argv[2]).resolve())
    for owner in (nn.Cell, api._JitExecutor):
        watch(owner)
    sys.argv, sys.path[0] = [script], str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
    api._pynative_executor.sync()  # operators run behind the line that calls them
    tick()
    left = folder / f"rank_{os.environ.get('RANK_ID', '0')}.json"
    left.write_text(json.dumps(moments))
