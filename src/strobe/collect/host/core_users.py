"""Which threads and processes use the cores: CPU time of this process's threads and its children.

Background work slows training down even if training never waits for it: threads and workers that
prepare batches, a thread that writes logs. The kernel counts for each how long it had a core, and
how long it was ready to run without one (schedstat).
"""

import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from strobe.collect.host.other_programs import OtherPrograms
from strobe.collect.host.stack_samples import Stacks, is_possible, stack_of
from strobe.collect.journal import Journal
from strobe.model.journal import (
    CHILD_PROCESSES,
    DATA_THREADS,
    NO_CORE_OF,
    ON_CORE_OF,
    OTHER_PROGRAM,
    PYTHON_THREADS,
    STROBE_THREADS,
    TRAINING_THREADS,
    Mark,
)

_COUNTER, _BESIDE = int(Mark.COUNTER), int(Mark.SAMPLE_BESIDE)

# The maximum cost of sampling, as a share of the time: a machine of many cores has many threads. At
# the rate that is enough for a long training, a short one would have too few samples.
BUDGET_RATIO = 0.0001
EARLY_BUDGET_RATIO = 0.0004
EARLY_NS = 15_000_000_000
# A thread that uses a core for at least this share of the time is sampled.
WORTH_ASKING_RATIO = 0.1
# Other programs are examined while training's threads lack a core for this share of the time.
CROWDED_RATIO = 0.05
# Maximum number of child processes examined, and their depth (a server that forks).
_MOST_PROCESSES = 256
_NEVER = 1 << 62
_TASKS = "/proc/self/task"
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


# Maximum number of files kept open, which count against the script's limit; the files of further
# threads are opened at each sample, which is slower.
MOST_HANDLES = 32


@dataclass
class _Thread:
    handle: int | None  # its schedstat, if that is kept open
    role: str
    on_core_ns: int = 0  # since the thread started
    no_core_ns: int = 0


class CoreUsers:
    """Sampled at intervals by one thread."""

    def __init__(
        self, journal: Journal, training: int,
        makes_batches: Callable[[int], bool] = lambda thread: False,
    ) -> None:  # fmt: skip
        """`training` is the training thread; `makes_batches` says by native id whether a thread of
        the framework builds batches.
        """
        self._journal, self._training, self._makes_batches = journal, training, makes_batches
        self._stacks = Stacks(journal.string)
        self._threads: dict[str, _Thread] = {}
        self._processes: dict[tuple[int, int], int] = {}  # by id and start: CPU time in ns
        self._on_core_ns: dict[str, int] = defaultdict(int)  # by role
        self._no_core_ns: dict[str, int] = defaultdict(int)
        self._names: dict[str, int] = {}
        self._others = OtherPrograms(self._put_other, EARLY_BUDGET_RATIO)
        self._is_crowded = False
        self._began_ns = self._looked_ns = self._due_ns = self._handles = 0

    def look(self, now_ns: int) -> None:
        if now_ns < self._due_ns:
            return
        began_ns = time.thread_time_ns()
        try:
            self._look(now_ns)
        # /proc is missing or incomplete: these counters are absent, which is visible
        except OSError:
            self._due_ns = _NEVER
            self.close()
            return
        if self._began_ns:
            is_early = now_ns - self._began_ns < EARLY_NS
            budget = EARLY_BUDGET_RATIO if is_early else BUDGET_RATIO
            self._due_ns = now_ns + int((time.thread_time_ns() - began_ns) / budget)
        else:  # at the first sample all threads are new, so it says nothing about others
            self._began_ns = now_ns
        self._looked_ns = now_ns

    def look_at_others(self, now_ns: int) -> None:
        """Which other programs compute, if training lacks cores. Has a budget of its own."""
        if self._is_crowded:
            try:
                self._others.look(now_ns)
            except OSError:  # /proc is missing or unreadable
                self._is_crowded = False

    def close(self) -> None:
        """Called by the sampling thread."""
        for task in list(self._threads):
            self._forget(task)

    def _look(self, now_ns: int) -> None:
        pythons = {str(one.native_id): one for one in threading.enumerate()}
        tasks = os.listdir(_TASKS)
        for task in set(self._threads).difference(tasks):
            self._forget(task)
        worth_asking_ns = WORTH_ASKING_RATIO * (now_ns - self._looked_ns)
        lacked_ns = self._no_core_ns[TRAINING_THREADS]
        for task in tasks:
            thread = self._threads.get(task) or self._meet(task, pythons.get(task))
            if thread is None:
                continue
            is_busy = self._count(task, thread) > worth_asking_ns
            if is_busy and thread.role == PYTHON_THREADS and task in pythons:
                self._ask(pythons[task], thread, now_ns)
        self._on_core_ns[CHILD_PROCESSES] += self._of_children(pythons)
        lacked_ns = self._no_core_ns[TRAINING_THREADS] - lacked_ns
        self._is_crowded = lacked_ns > CROWDED_RATIO * (now_ns - self._looked_ns)
        for role, value in self._on_core_ns.items():
            self._put(ON_CORE_OF.format(role), value, now_ns)
        for role, value in self._no_core_ns.items():
            self._put(NO_CORE_OF.format(role), value, now_ns)

    def _meet(self, task: str, python: threading.Thread | None) -> _Thread | None:
        """Register a new thread; None if it has just ended."""
        handle = None
        if self._handles < MOST_HANDLES:
            try:
                handle = _opened(task)
            except FileNotFoundError:
                return None
            self._handles += 1
        thread = self._threads[task] = _Thread(handle, self._role(int(task), python))
        return thread

    def _count(self, task: str, thread: _Thread) -> int:
        """Add its CPU time since the last sample."""
        try:
            on_core, no_core, _ = map(int, _schedstat(task, thread.handle).split())
        # it ended; another thread may get its number
        except (FileNotFoundError, ProcessLookupError):
            self._forget(task)
            return 0
        if on_core < thread.on_core_ns:  # its number was reused by another thread
            self._forget(task)
            return 0
        computed_ns = on_core - thread.on_core_ns
        self._on_core_ns[thread.role] += computed_ns
        self._no_core_ns[thread.role] += no_core - thread.no_core_ns
        thread.on_core_ns, thread.no_core_ns = on_core, no_core
        return computed_ns

    def _forget(self, task: str) -> None:
        handle = self._threads.pop(task).handle
        if handle is not None:
            os.close(handle)
            self._handles -= 1

    def _role(self, number: int, python: threading.Thread | None) -> str:
        # A thread of the framework that once called Python is a dummy thread to Python.
        if python is None or isinstance(python, threading._DummyThread):
            return DATA_THREADS if self._makes_batches(number) else TRAINING_THREADS
        if python.name.startswith("strobe-"):
            return STROBE_THREADS
        return TRAINING_THREADS if python.ident == self._training else PYTHON_THREADS

    def _ask(self, python: threading.Thread, thread: _Thread, now_ns: int) -> None:
        """Record the line that it is at."""
        frames = stack_of(python.ident) if is_possible() and python.ident else []
        if not frames:
            return
        number = self._stacks.number(frames)
        del frames
        self._journal.mark(_BESIDE, number, thread.on_core_ns, now_ns, python.ident or 0)

    def _of_children(self, pythons: Iterable[str]) -> int:
        """Add the CPU time of child processes since the last sample."""
        if not _has_children():
            self._processes = {}
            return 0
        passed_ns = 0
        waiting = [f"{_TASKS}/{task}/children" for task in pythons]
        found: dict[tuple[int, int], int] = {}
        while waiting and len(found) < _MOST_PROCESSES:
            for process in _words(waiting.pop()):
                fields = _stat(process)
                if fields is None:
                    continue
                key = int(process), int(fields[19])
                # User and system time, including its children that ended and were waited for.
                found[key] = sum(map(int, fields[11:15])) * _TICK_NS
                passed_ns += max(0, found[key] - self._processes.get(key, 0))
                waiting.append(f"/proc/{process}/task/{process}/children")
        self._processes = found
        return passed_ns

    def _put_other(self, program: str, value: int) -> None:
        self._put(OTHER_PROGRAM.format(program), value, 0)

    def _put(self, name: str, value: int, now_ns: int) -> None:
        ref = self._names.get(name)
        if ref is None:
            ref = self._names[name] = self._journal.string("counter", name)
        self._journal.mark(_COUNTER, ref, value, now_ns)


def _opened(task: str) -> int:
    return os.open(f"{_TASKS}/{task}/schedstat", os.O_RDONLY | os.O_CLOEXEC)


def _schedstat(task: str, kept: int | None) -> bytes:
    if kept is not None:
        return os.pread(kept, 128, 0)
    handle = _opened(task)
    try:
        return os.read(handle, 128)
    finally:
        os.close(handle)


def _has_children() -> bool:
    try:
        # A process that ended stays until its parent waits for it.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def native_threads() -> set[int]:
    """The native ids of all threads of this process; empty if unknown."""
    with contextlib.suppress(OSError):
        return set(map(int, os.listdir(_TASKS)))
    return set()


def thread_name(number: int) -> str:
    """The name known to the kernel; a thread without a name of its own inherits its creator's."""
    return "".join(_words(f"{_TASKS}/{number}/comm"))


def _words(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().split()
    except OSError:  # it ended, or this kernel does not support it
        return []


def _stat(process: str) -> list[str] | None:
    """The fields after the name, which may contain anything."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return None
