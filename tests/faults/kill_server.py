"""Fork trainings that record themselves, and kill each with SIGKILL after its number of seconds.

Arguments: folder, then a JSON list of [seconds, options of strobe.Profiler]. Training i records to
`folder/i` and logs each finished step to `folder/i.log` with the monotonic time, by os.write.
One import of torch serves them all; the processes, the recorder and the kills are the real ones.
"""

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable

import torch

# What Profiler.start would import: without it every child takes most of a second to begin.
import strobe.collect.profiler
import strobe.collect.torch.hooks

AT_ONCE = 4
torch.set_num_threads(1)


def train(folder: str, number: int, options: dict) -> None:
    log = os.open(f"{folder}/{number}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    strobe.Profiler(output_path=f"{folder}/{number}", **options).start()
    step_of = new_training()
    for step in itertools.count(1):
        step_of()
        os.write(log, b"%d %d\n" % (step, time.monotonic_ns()))


def new_training() -> Callable[[], None]:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()

    return step


def main(folder: str, plan: list) -> None:
    new_training()()  # torch imports much of itself only now; not once for each child
    waiting = list(enumerate(plan))
    alive: list[tuple[float, int, int]] = []
    with open(f"{folder}/kills.log", "w") as kills:
        while waiting or alive:
            while waiting and len(alive) < AT_ONCE:
                number, (seconds, options) = waiting.pop(0)
                pid = os.fork()
                if not pid:
                    train(folder, number, options)
                alive.append((time.monotonic() + seconds, pid, number))
            alive.sort()
            deadline, pid, number = alive.pop(0)
            time.sleep(max(0.0, deadline - time.monotonic()))
            at_ns = time.monotonic_ns()
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            kills.write(f"{number} {at_ns} {status}\n")


main(sys.argv[1], json.loads(sys.argv[2]))
