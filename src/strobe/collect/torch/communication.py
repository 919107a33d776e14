"""Marks of communication between ranks: waiting for a collective, and DDP's gradient all-reduce."""

import time
import weakref
from collections.abc import Callable
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.model.journal import Mark


def hook_waits(recorder: Recorder, torch: Any) -> Callable[[], None]:
    """Mark the time that the host waits for collectives called from Python; returns the undo.

    The collectives themselves stay unchanged: torch.compile knows those functions by identity.
    """
    if not torch.distributed.is_available():
        return lambda: None
    from torch._C._distributed_c10d import Work

    original = Work.wait

    def mark_wait(code: Mark) -> None:
        recorder.mark(code, recorder.journal.string("collective", "wait"))

    mark = recorder.guarded(mark_wait)

    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        mark(Mark.COLLECTIVE_BEGAN)
        try:
            return original(self, *args, **kwargs)
        finally:
            mark(Mark.COLLECTIVE_ENDED)

    setattr(Work, "wait", wait)  # noqa: B010 - a class of C++, which mypy sees as closed
    return lambda: setattr(Work, "wait", original)


class GradientExchange:
    """DDP reduces gradients in C++ while backward runs. It measures itself, and we read
    its times.
    """

    def __init__(self, recorder: Recorder, ddp: Any) -> None:
        self._recorder = recorder
        self._ddp = weakref.ref(ddp)
        self._last_end = 0
        # By default DDP times its buckets only in some iterations; request it for all.
        ddp._set_ddp_runtime_logging_sample_rate(1)

    def is_of(self, module: Any) -> bool:
        return self._ddp() is module

    def mark_last(self) -> None:
        """All-reduce that outlasted the backward pass in the previous iteration, as DDP
        reports it.
        """
        ddp = self._ddp()
        if ddp is None:
            return
        said = ddp._get_ddp_logging_data()
        computed = said.get("backward_compute_time_end", 0)
        communicated = said.get("backward_comm_time_end", 0)
        if communicated > computed > 0 and communicated != self._last_end:
            self._last_end = communicated
            to_monotonic = time.monotonic_ns() - time.time_ns()
            self._recorder.mark(
                Mark.ALL_REDUCE, 0, communicated - computed, computed + to_monotonic
            )
