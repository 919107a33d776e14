"""Memory of arrays, sampled as steps end: of all arrays that the script holds, and of each device
that has statistics of its own.
"""

from time import monotonic_ns
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.model.journal import Mark

# Twice per second is enough to see growth, and too seldom to be noticed.
_LEAST_INTERVAL_NS = 500_000_000
# A script may hold a great many arrays: this is the maximum share of the time to spend on sampling.
_PART_OF_TIME = 2000

# The statistics of a device that are recorded, and the suffixes of their counters.
_STATISTICS = {"bytes_in_use": "allocated_bytes", "peak_bytes_in_use": "peak_allocated_bytes"}


class MemoryLooks:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._due_ns = 0
        self._devices: list[Any] | None = None  # those with statistics, once known

    def look(self) -> None:
        began_ns = monotonic_ns()
        if began_ns < self._due_ns:
            return
        import jax

        self._put("live_array_bytes", sum(array.nbytes for array in jax.live_arrays()))
        if self._devices is None:
            # A CPU has none, and never will.
            self._devices = [device for device in jax.local_devices() if device.memory_stats()]
        for device in self._devices:
            self._look_at(device)
        cost_ns = monotonic_ns() - began_ns
        self._due_ns = began_ns + max(_LEAST_INTERVAL_NS, _PART_OF_TIME * cost_ns)

    def _look_at(self, device: Any) -> None:
        found = device.memory_stats()
        for key, name in _STATISTICS.items():
            if found and key in found:
                self._put(f"{device_name(device)} {name}", int(found[key]))

    def _put(self, name: str, value: int) -> None:
        self._recorder.mark(Mark.COUNTER, self._recorder.journal.string("counter", name), value)


def device_name(device: Any) -> str:
    """gpu:0, as in XLA's traces."""
    return f"{device.platform}:{device.local_hardware_id}"
