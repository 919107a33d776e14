"""Sample the host on a background thread: CPU, memory, page faults, GC pauses."""

import contextlib
import math
import os
import resource
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from strobe.collect.host.core_users import CoreUsers
from strobe.collect.host.gc_pauses import GcPauses
from strobe.collect.host.hardware_counters import Counters
from strobe.collect.journal import Journal
from strobe.collect.start.checks import ClockWatch
from strobe.model.journal import Mark

_COUNTER, _CLOCK = int(Mark.COUNTER), int(Mark.CLOCK)

# The first samples are taken faster, so that a short training has enough of them.
_EARLY_SAMPLES = 20
_EARLY_FASTER = 5
# The kernel counts core time in hundredths of a second, and reading it takes half of a sample's
# time.
_EARLY_CORES_EVERY = 2

# With more cores than this, their lines are read only every few samples: the kernel takes long to
# write them.
_MANY_CORES = 32
_MANY_CORES_EVERY = 5


class Sampler:
    def __init__(
        self, journal: Journal, period_s: float, guarded: Callable[[Any], Any],
        what: str | None = "all", hardware: Counters | None = None,
        warn: Callable[[str, str], None] = lambda source, what: None,
        at_looks: Sequence[Callable[[], None]] = (), core_users: CoreUsers | None = None,
    ) -> None:  # fmt: skip
        """`guarded` wraps a function so that it never raises, as for the recorder's hooks.

        `what` is the option profile_framework; the clocks are always read.
        """
        self._journal, self._period_s = journal, period_s
        self._what, self._hardware, self._warn = what, hardware, warn
        self._at_looks, self._core_users = at_looks, core_users
        self._clock = ClockWatch()
        # The thread sleeps until this is released: waking up from an event takes twice as long.
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self._is_stopped = False
        self._thread = threading.Thread(
            target=guarded(self._work), name="strobe-sampler", daemon=True
        )
        self._gc_pauses = GcPauses(journal)
        self._tell_gc_pauses = guarded(self._gc_pauses.tell)
        self._names: dict[str, int] = {}
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        # For each core: the name of its counter, the total time and the busy time.
        self._cores: dict[bytes, tuple[str, int, int]] = {}

    def start(self) -> None:
        self._sample_clock()
        self._put("cores_usable_milli", round(usable_cores() * 1000))
        if physical := physical_cores():
            self._put("cores_physical", physical)
        if self._what == "all":
            self._put("memory_usable_bytes", usable_memory_bytes())
        if self._what is not None:
            self._gc_pauses.start()
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped = True
        with contextlib.suppress(RuntimeError):  # stopped twice before the thread ended
            self._asleep.release()
        self._gc_pauses.forget()
        self._tell_gc_pauses()  # guarded: the caller has more to stop

    def forget_in_child(self) -> None:
        """A forked child has the parent's mapped journal and must not write to it. It does not have
        our thread, and the thread's locks may be held forever.
        """
        self._gc_pauses.forget()

    def _work(self) -> None:
        handles = _open_proc()
        try:
            sample = 0
            while not self._is_stopped:
                self._sample(handles, sample)
                sample += 1
                is_early = sample < _EARLY_SAMPLES
                period_s = self._period_s / _EARLY_FASTER if is_early else self._period_s
                self._asleep.acquire(timeout=period_s)
        finally:
            for handle in handles.values():
                os.close(handle)
            if self._core_users is not None:
                self._core_users.close()

    def _sample(self, handles: dict[str, int], sample: int) -> None:
        for call in self._at_looks:
            call()
        if sample >= _EARLY_SAMPLES or sample % _EARLY_FASTER == 0:  # clocks drift slowly
            self._sample_clock()
        if self._hardware is not None:
            for name, value in self._hardware.read().items():
                self._put(name, value)
        if self._what is not None:
            self._tell_gc_pauses()
            self._sample_host(handles, sample)

    def _sample_host(self, handles: dict[str, int], sample: int) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        now_ns, put = time.monotonic_ns(), self._put
        put("process_cpu_ns_total", time.process_time_ns(), now_ns)
        put("system_cpu_ns_total", round(usage.ru_stime * 1e9), now_ns)
        put("page_faults_total", usage.ru_minflt, now_ns)
        put("page_faults_major_total", usage.ru_majflt, now_ns)
        put("context_switches_total", usage.ru_nvcsw + usage.ru_nivcsw, now_ns)
        put("context_switches_forced_total", usage.ru_nivcsw, now_ns)
        if "statm" in handles and self._what == "all":
            pages, shared = map(int, os.pread(handles["statm"], 256, 0).split()[1:3])
            put("rss_bytes", pages * self._page_bytes, now_ns)
            # Without files and what data workers transfer, which come and go by themselves.
            put("rss_private_bytes", (pages - shared) * self._page_bytes, now_ns)
        if self._core_users is not None:
            self._core_users.look(now_ns)
            self._core_users.look_at_others(now_ns)
        if "stat" in handles and sample % self._cores_every(sample) == 0:
            self._sample_cores(os.pread(handles["stat"], 1 << 16, 0))

    def _cores_every(self, sample: int) -> int:
        if len(self._cores) > _MANY_CORES:
            return _MANY_CORES_EVERY
        return _EARLY_CORES_EVERY if sample < _EARLY_SAMPLES else 1

    def _sample_cores(self, stat: bytes) -> None:
        now_ns = time.monotonic_ns()
        for line in stat.partition(b"\nintr")[0].splitlines():
            core, *fields = line.split(None, 9)
            if core not in self._cores and not core.startswith(b"cpu"):
                continue
            ticks = [*map(int, fields[:8])]
            total = sum(ticks)
            busy = total - ticks[3] - ticks[4]  # without idle and iowait
            name, total_before, busy_before = self._cores.get(core) or (_core_counter(core), 0, 0)
            self._cores[core] = name, total, busy
            if total_before and total != total_before:
                share = (busy - busy_before) / (total - total_before)
                scale = 1000 if core != b"cpu" else 1000 * (os.cpu_count() or 1)
                self._put(name, round(share * scale), now_ns)

    def _sample_clock(self) -> None:
        # The wall clock is read between two readings of the steady clock; a wide pair is tried
        # again.
        for _ in range(5):
            before = time.monotonic_ns()
            unix_ns = time.time_ns()
            after = time.monotonic_ns()
            if after - before < 5_000:
                break
        self._journal.mark(_CLOCK, 0, unix_ns, (before + after) // 2)
        jump = self._clock.jumped((before + after) // 2, unix_ns)
        if jump is not None:
            self._warn("clock", jump)

    def _put(self, name: str, value: int, ts_ns: int = 0) -> None:
        ref = self._names.get(name)
        if ref is None:
            ref = self._names[name] = self._journal.string("counter", name)
        self._journal.mark(_COUNTER, ref, value, ts_ns)


def _core_counter(core: bytes) -> str:
    """From the name in /proc/stat: `cpu` is all of them."""
    return f"core_{core[3:].decode()}_busy_permille" if core != b"cpu" else "cores_busy_milli"


def usable_cores() -> float:
    """The cores that this process may use: those it is bound to, or fewer if a quota is set."""
    try:
        bound = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not a Linux
        bound = os.cpu_count() or 1
    return min(bound, _quota())


def physical_cores() -> int:
    """Cores that this process is bound to, without hyperthreads; 0 if unknown."""
    try:
        folder = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
        found = {tuple(_read(folder.format(number))) for number in os.sched_getaffinity(0)}
    except (AttributeError, OSError):
        return 0
    return len(found)


def _quota() -> float:
    """The quota of the control group, as containers have one, in cores."""
    for path, period_path in (
        ("/sys/fs/cgroup/cpu.max", None),
        ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    ):
        try:
            words = _read(path) + (_read(period_path) if period_path else [])
            quota, period = float(words[0]), float(words[1])
        except (OSError, ValueError, IndexError):  # no such group, or "max"
            continue
        if quota > 0 and period > 0:
            return quota / period
    return math.inf


def usable_memory_bytes() -> int:
    """The memory of this machine, or the limit of its control group."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            return min(installed, int(_read(path)[0]))
        except (OSError, ValueError, IndexError):  # no such group, or "max"
            continue
    return installed


def _read(path: str) -> list[str]:
    with open(path, encoding="ascii") as file:
        return file.read().split()


def _open_proc() -> dict[str, int]:
    handles = {}
    for name, path in (("statm", "/proc/self/statm"), ("stat", "/proc/stat")):
        try:
            handles[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no /proc: those counters are absent, which is visible
            continue
    return handles
