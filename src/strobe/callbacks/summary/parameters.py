"""Distributions of a model's parameters, counted alongside training, without a copy of the model.

Parameters of PyTorch do not change from one update of the optimizer to the next. A thread reads
large ones meanwhile, where they are. An update that comes too early makes it read again after the
next step, and the row has the number of that step; what it cannot read between two updates, twice
in a row, is copied before the third one, unless that would take long. Small parameters are copied
at once.
"""

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic, monotonic_ns
from typing import Any

from strobe.callbacks.summary.destination import Destination
from strobe.collect.metrics.histograms import histogram_job, torch_histogram
from strobe.collect.notices import notice
from strobe.model.metric_journal import HISTOGRAM

_MOST_READS = 2
# At each collection, this much is copied, the smallest parameters first: about a millisecond.
_COPIED_BYTES = {"cpu": 4 << 20}
_COPIED_BYTES_ON_DEVICE = 256 << 20
# While copies of this size wait to be read, no more are made.
_MOST_WAITING_BYTES = 256 << 20
_NICENESS = 10
_CLOSE_S = 10.0


@dataclass
class _Waiting:
    values: Any
    step: int  # the last one after which they were read in vain, or are to be read
    reads: int = 0
    copy: Any = None


class ParameterHistograms:
    def __init__(self, to: Destination) -> None:
        self._to = to
        # By tag and step; where they are, and not in a copy, a later step replaces an earlier one.
        self._waiting: dict[tuple[str, int | None], _Waiting] = {}
        self._changed = threading.Condition()
        self._step = 0
        self._replaced = 0  # by a later step, before they could be read
        # Counts the moments at which parameters begin, or cease, to be safe to read.
        self._moments = 0
        self._is_steady = self._is_closed = False
        self._is_reading = False
        self._thread: threading.Thread | None = None
        self._hook: Any = None
        self._pid = os.getpid()

    def take(self, named: Iterable[tuple[str, Any]], step: int) -> None:
        """Read these as they are after this step. Those that still wait are read now, too."""
        found = {}
        for name, values in named:
            if _moves(values):  # another thread must not touch these
                self._to.histogram(*histogram_job(name, values, step, None, self._to.source))
            else:
                local = values.to_local() if hasattr(values, "to_local") else values
                found[name] = _Waiting(local.detach(), step)
        if not found:
            return
        waiting = sum(
            one.values.nbytes for one in list(self._waiting.values()) if one.copy is not None
        )
        if waiting < _MOST_WAITING_BYTES:
            _copy_small(found.values())
        if self._thread is None or self._pid != os.getpid():
            self._start(sys.modules["torch"])
        with self._changed:
            for name, one in found.items():
                key = (name, None if one.copy is None else step)
                self._replaced += key in self._waiting
                self._waiting[key] = one
        self.step_ended(step)

    def step_ended(self, step: int) -> None:
        """The parameters are those after this step, until the next update begins."""
        if not self._waiting:
            return
        with self._changed:
            self._step, self._is_steady = step, True
            self._moments += 1
            self._changed.notify()

    def _update_begins(self, *_: Any) -> None:
        """Called by every optimizer on the training thread; must not wait."""
        if not self._waiting:
            return
        self._moments += 1
        was_steady, self._is_steady = self._is_steady, False
        if not was_steady:
            return
        for one in list(self._waiting.values()):
            is_small = one.values.nbytes <= _copied_bytes(one.values)
            if one.reads >= _MOST_READS and one.copy is None and is_small:
                one.copy, one.step = one.values.clone(), self._step

    def _start(self, torch: Any) -> None:
        self._pid, self._is_closed = os.getpid(), False
        self._changed = threading.Condition()
        if self._hook is None:
            optimizers = importlib.import_module("torch.optim.optimizer")
            register = optimizers.register_optimizer_step_pre_hook
            self._hook = register(self._update_begins)
        stream = torch.cuda.current_stream() if torch.cuda.is_initialized() else None
        self._thread = threading.Thread(
            target=self._work, args=(torch, stream), name="strobe histograms", daemon=True
        )
        self._thread.start()

    def _work(self, torch: Any, stream: Any) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        on_stream = torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext()
        with torch.no_grad(), on_stream:
            while not self._is_closed:
                key = self._next()
                if key is not None:
                    self._to.guarded(key[0], functools.partial(self._read, key))

    def _next(self) -> tuple[str, int | None] | None:
        """The parameter to read now; waits until there is one."""
        with self._changed:
            while not self._is_closed:
                ready = [
                    (one.copy is None, one.reads, one.values.nbytes, key)
                    for key, one in self._waiting.items()
                    if self._is_steady or one.copy is not None
                ]
                if ready:  # what was read in vain comes last
                    return min(ready, key=lambda one: one[:-1])[-1]
                self._changed.wait(0.05 if self._waiting else None)
        return None

    def _read(self, key: tuple[str, int | None]) -> None:
        one, moment, step = self._waiting[key], self._moments, self._step
        is_copy = one.copy is not None
        ts_ns = monotonic_ns()
        try:
            version = one.values._version
            found = torch_histogram(one.copy if is_copy else one.values)
        except Exception:
            self._forget(key, one)
            raise
        is_torn = self._moments != moment or one.values._version != version
        if is_torn and not is_copy:
            one.reads += 1
            return
        self._forget(key, one)
        record = {"tag": key[0], "step": one.step if is_copy else step, **found}
        self._to.record(HISTOGRAM, record, ts_ns)

    def _forget(self, key: tuple[str, int | None], one: _Waiting) -> None:
        with self._changed:
            if self._waiting.get(key) is one:
                del self._waiting[key]

    def close(self) -> None:
        """After the last update; waits, within a bounded time, for what is to be read."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        if self._thread is None or self._pid != os.getpid():
            return
        self.step_ended(self._step)
        until = monotonic() + _CLOSE_S
        while self._waiting and monotonic() < until and self._thread.is_alive():
            self._thread.join(0.005)
        if self._waiting:
            self._to.warn(notice("summary-unread", count=len(self._waiting)))
        if self._replaced:
            self._to.warn(notice("summary-replaced", count=self._replaced))
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(1.0)
        self._thread = None


def _copy_small(waiting: Iterable[_Waiting]) -> None:
    copied = 0
    for one in sorted(waiting, key=lambda one: one.values.nbytes):
        copied += one.values.nbytes
        if copied > _copied_bytes(one.values):
            return
        one.copy = one.values.clone()


def _copied_bytes(values: Any) -> int:
    return _COPIED_BYTES.get(values.device.type, _COPIED_BYTES_ON_DEVICE)


def _moves(values: Any) -> bool:
    """Whether the storage of a parameter comes and goes, as with DeepSpeed's stage 3."""
    return hasattr(values, "ds_id") or hasattr(values, "_is_flat_param")
