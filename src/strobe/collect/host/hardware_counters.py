"""Hardware events of the processor (cycles, instructions, misses), counted by the kernel.

Linux counts them for free once they are set up: perf_event_open(2), called through ctypes. Each
existing thread has counters, which the threads it starts inherit. Other processes (data workers)
are not counted. Only user mode is counted, which needs no privilege.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable
from typing import Any

from strobe.model.options import Options

# perf_event_open has no name in the C library, only a number.
_NUMBERS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "s390x": 331, "riscv64": 241}

_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3  # types of events
_L1_DATA_READ_MISSES = 0 | (0 << 8) | (1 << 16)
_LAST_LEVEL_READ_MISSES = 2 | (0 << 8) | (1 << 16)

_EVENTS = {
    "pipeline": {
        "cycles_total": (_HARDWARE, 0),
        "instructions_total": (_HARDWARE, 1),
        "task_clock_ns_total": (_SOFTWARE, 1),  # available even if the processor has no counters
    },
    "cache": {
        "cache_references_total": (_HARDWARE, 2),
        "cache_misses_total": (_HARDWARE, 3),
        "l1_data_misses_total": (_CACHE, _L1_DATA_READ_MISSES),
        "last_level_cache_misses_total": (_CACHE, _LAST_LEVEL_READ_MISSES),
    },
    "branches": {"branches_total": (_HARDWARE, 4), "branch_misses_total": (_HARDWARE, 5)},
}

# The metrics to request from CUPTI for each kernel, by its names.
_OF_KERNELS = {
    "pipeline": ["sm__cycles_active.avg", "kineto__cuda_core_flops", "kineto__tensor_core_insts"],
    "cache": ["dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors.sum"],
    "branches": ["smsp__inst_executed.sum"],
}

# The first version of struct perf_event_attr (64 bytes): later fields stay zero.
_ATTRIBUTES = struct.Struct("<IIQQQQQIIQ")
_EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 5, 1 << 6
_INHERIT, _INHERIT_THREADS_ONLY = 1 << 1, 1 << 35
# The value comes with the time for which it was enabled and running: with more events than the
# processor has counters, the kernel multiplexes them.
_TIMES_TOO = 1 | 2
_VALUE = struct.Struct("<QQQ")
_CLOSE_ON_EXEC = 8

# Each event of each thread is an open file; a process may have 1024 of them.
_MOST_THREADS = 64


def groups(options: Options) -> list[str]:
    """The groups of counters that the options request."""
    wanted = options.hardware_metrics
    chosen = list(_EVENTS) if wanted == "all" else [wanted] if wanted else []
    if options.l2_cache and "cache" not in chosen:
        chosen.append("cache")
    return chosen


class Counters:
    """Open counters of this process; `refused` says why some or all are missing."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._files: dict[str, list[int]] = {}
        self._errors: dict[str, int] = {}
        threads = sorted(map(int, os.listdir("/proc/self/task")))[:_MOST_THREADS]
        for group in wanted:
            for name, (kind, config) in _EVENTS[group].items():
                self._open(name, kind, config, threads)

    @property
    def refused(self) -> str:
        if not self._errors:
            return ""
        names = ", ".join(name.removesuffix("_total") for name in self._errors)
        return f"hardware counters ({names}) are not recorded: {_why(set(self._errors.values()))}"

    def read(self) -> dict[str, int]:
        return {name: sum(map(_value, files)) for name, files in self._files.items()}

    def __del__(self) -> None:
        """The last reader keeps it alive: a sampling thread, or the recorder."""
        for file in (file for files in self._files.values() for file in files):
            os.close(file)

    def _open(self, name: str, kind: int, config: int, threads: list[int]) -> None:
        files = []
        for thread in threads:
            try:
                files.append(_opened(kind, config, thread))
            except OSError as error:
                if error.errno == errno.ESRCH:  # the thread has just ended
                    continue
                self._errors[name] = error.errno or 0
                break
        if files:
            self._files[name] = files


def _opened(kind: int, config: int, thread: int) -> int:
    flags = _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR | _INHERIT
    try:
        return _call(kind, config, thread, flags | _INHERIT_THREADS_ONLY)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return _call(kind, config, thread, flags & ~_INHERIT)  # Linux before 5.13


def _call(kind: int, config: int, thread: int, flags: int) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    packed = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config, 0, 0, _TIMES_TOO, flags, 0, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(packed, _ATTRIBUTES.size)
    file = library.syscall(
        ctypes.c_long(number), buffer, ctypes.c_int(thread), ctypes.c_int(-1), ctypes.c_int(-1),
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )  # fmt: skip
    if file < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(file)


def _value(file: int) -> int:
    value, wanted, counted = _VALUE.unpack(os.read(file, _VALUE.size))
    return int(value * wanted / counted) if counted and counted < wanted else int(value)


def _why(codes: set[int]) -> str:
    if codes & {errno.EACCES, errno.EPERM}:
        return (
            "the kernel does not allow it. As an administrator, run: sysctl "
            "kernel.perf_event_paranoid=2 (in a container, also use --cap-add PERFMON)"
        )
    if codes & {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP}:
        return "the processor does not offer them, as in most virtual machines"
    if codes & {errno.ENOSYS}:
        return "this system has no perf_event_open"
    return ", ".join(os.strerror(code) for code in codes)


def of_kernels(torch: Any, options: Options) -> dict[str, Any]:
    """For torch.profiler on CUDA: the metrics that CUPTI measures for each kernel."""
    wanted = groups(options)
    if not wanted or not options.profile_device or not torch.cuda.is_available():
        return {}
    metrics = [name for group in wanted for name in _OF_KERNELS[group]]
    config = torch._C._profiler._ExperimentalConfig
    return {
        "experimental_config": config(profiler_metrics=metrics, profiler_measure_per_kernel=True)
    }
