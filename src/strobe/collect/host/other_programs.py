"""Which other programs compute while training lacks cores, by name.

Examined only while training's threads are kept from running: on an idle machine nothing is read.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

# A machine with more processes than this takes too long to scan.
_MOST_PROCESSES = 4096
# Maximum number of such counters per run.
_MOST_NOTED = 32
# Less CPU time than this in total is not worth a counter.
_LEAST_NS = 50_000_000
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# A process started by one of these is not part of the same job as its siblings.
_SHELLS = frozenset(
    ("bash", "sh", "dash", "zsh", "fish", "tmux", "screen", "sshd", "systemd", "init")
)


class OtherPrograms:
    """Sampled at intervals by one thread; `put` writes a counter: its name, and nanoseconds."""

    def __init__(self, put: Callable[[str, int], None], budget_ratio: float) -> None:
        self._put, self._budget_ratio = put, budget_ratio
        self._before: dict[tuple[int, str], int] = {}  # by process and name: CPU time in ns
        self._used_ns: dict[str, int] = defaultdict(int)
        self._noted: set[str] = set()
        self._due_ns = 0

    def look(self, now_ns: int) -> None:
        """Raises OSError if /proc cannot be read."""
        if now_ns < self._due_ns:
            return
        began_ns = time.thread_time_ns()
        found, parents = _processes()
        job = _job(parents, found)
        for (process, name), used_ns in found.items():
            before_ns = self._before.get((process, name))
            if before_ns is not None and not _descends(process, job, parents):
                self._used_ns[name] += max(0, used_ns - before_ns)
        self._before = found
        for name, used_ns in self._used_ns.items():
            if used_ns < _LEAST_NS or (name not in self._noted and len(self._noted) >= _MOST_NOTED):
                continue
            if name not in self._noted:  # a counter grows from zero
                self._noted.add(name)
                self._put(name, 0)
            self._put(name, used_ns)
        self._due_ns = now_ns + int((time.thread_time_ns() - began_ns) / self._budget_ratio)


def _processes() -> tuple[dict[tuple[int, str], int], dict[int, int]]:
    """The CPU time of every process, and its parent."""
    found: dict[tuple[int, str], int] = {}
    parents: dict[int, int] = {}
    numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    for number in numbers[:_MOST_PROCESSES]:
        try:
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
                head, _, tail = file.read().rpartition(")")
        except OSError:  # it has just ended
            continue
        fields = tail.split()
        name = head.partition("(")[2]
        parents[int(number)] = int(fields[1])
        found[int(number), name] = (int(fields[11]) + int(fields[12])) * _TICK_NS
    return found, parents


def _job(parents: dict[int, int], found: Iterable[tuple[int, str]]) -> int:
    """The process that started this job: a launcher above this process, or this one."""
    names = dict(found)
    job = os.getpid()
    while (above := parents.get(job, 0)) > 1 and names.get(above, "sh") not in _SHELLS:
        job = above
        if names[job] == "strobe":  # `strobe run`: whatever is above it is another program
            break
    return job


def _descends(process: int, job: int, parents: dict[int, int]) -> bool:
    while process > 1:
        if process == job:
            return True
        process = parents.get(process, 0)
    return False
