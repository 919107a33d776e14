"""Debug modes of PyTorch: which are on, where they were turned on, and what a stack trace costs."""

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from strobe.collect.host.debug_modes import DebugModes, in_environment
from strobe.collect.recorder import Recorder
from strobe.model.journal import ANOMALY_FRAME_COUNTER, ANOMALY_STACK_COUNTER

# Each formatted stack takes some 50 µs, so a few of them are enough.
_REPEATS = 3
# A mode may be turned on again in every step; the first lines are enough.
_LOOKS = 8


class TorchDebug:
    """Installed with the other hooks of PyTorch; `begin` is called when training begins."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def install(self, torch: Any) -> list[Callable[[], None]]:
        """Record the line that turns anomaly detection on; returns the undo."""
        modes = torch.autograd.anomaly_mode
        # Not detect_anomaly.__init__: it warns, and the warning names the line that called it.
        return [
            self._wrap(torch, modes.detect_anomaly, "__enter__"),
            self._wrap(torch, modes.set_detect_anomaly, "__init__"),
        ]

    def begin(self, torch: Any) -> None:
        modes = DebugModes(
            self._recorder,
            {
                "detect_anomaly": torch.is_anomaly_enabled,
                "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
                "profiler": lambda: self._is_profiled(torch),
                **in_environment("CUDA_LAUNCH_BLOCKING"),
            },
        )
        modes.begin()
        if torch.is_anomaly_enabled():
            stack_ns, frame_ns = _stack_cost(torch)
            modes.count(ANOMALY_STACK_COUNTER, stack_ns)
            modes.count(ANOMALY_FRAME_COUNTER, frame_ns)

    def _is_profiled(self, torch: Any) -> bool:
        """Whether the script itself turned it on.

        A window of full recording turns the same flag on, and this is called on another thread
        while one may be starting or ending.
        """
        windows = getattr(self._recorder.hooks, "windows", None)
        return torch.autograd.profiler._is_profiler_enabled and getattr(
            windows, "has_others", False
        )

    def _wrap(self, torch: Any, owner: Any, name: str) -> Callable[[], None]:
        original, recorder, looks = getattr(owner, name), self._recorder, iter(range(_LOOKS))

        @functools.wraps(original)
        def turned_on(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            try:
                for _ in looks:  # the next one, if there is one
                    if torch.is_anomaly_enabled():
                        recorder.places.see("debug mode", sys._getframe(1), mode="detect_anomaly")
                    break
            except Exception as error:
                recorder.broke("detect_anomaly", error)
            return result

        setattr(owner, name, turned_on)
        return lambda: setattr(owner, name, original)


def _stack_cost(torch: Any) -> tuple[int, int]:
    """The cost, in nanoseconds, of a stack trace from here, as anomaly detection takes one per
    operator that it may have to differentiate; and of each further frame.
    """
    try:
        from torch.fx.traceback import format_stack
    except ImportError:
        return 0, 0

    def cost_ns() -> int:
        found = []
        for _ in range(_REPEATS):
            began_ns = time.perf_counter_ns()
            format_stack()
            found.append(time.perf_counter_ns() - began_ns)
        return min(found)

    def deeper(frames: int) -> int:
        return deeper(frames - 1) if frames else cost_ns()

    here_ns = cost_ns()
    return here_ns, max(0, deeper(10) - here_ns) // 11
