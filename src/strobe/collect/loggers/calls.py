"""Calls of other loggers: the values that they are given go to the metrics of this recording.

A method of a logger is wrapped: it does its work as before, and what it was given is recorded once
it has returned. If loggers call each other, the outermost call of a thread counts.
"""

import contextlib
import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from time import monotonic_ns, time_ns
from typing import Any

from strobe.collect import ranks, recorder
from strobe.collect.metrics.log import Job
from strobe.collect.metrics.numbers import PLAIN
from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder

# Given what was logged, and the arguments of the call.
Take = Callable[..., None]

# Threads that are in a call of a logger.
_inside: set[int] = set()
_undo: list[Callable[[], None]] = []
_last: Recorder | None = None
# Those that have logged before their process was known to train.
_unclaimed: list[Recorder] = []
# What went wrong, each reason once: the same call follows at every step.
_warnings: set[str] = set()


class Values:
    """Takes the values of one call."""

    __slots__ = ("_recorder", "result", "source", "ts_ns")

    def __init__(self, active: Recorder, source: str, ts_ns: int, result: Any) -> None:
        self._recorder, self.source, self.ts_ns, self.result = active, source, ts_ns, result

    def scalars(self, values: Mapping[str, Any], step: Any, ts_ns: int = 0) -> None:
        """Numbers by tag; texts among them are logged as texts."""
        if self._recorder.rank is None:
            _write_at_exit(self._recorder)
        self._recorder.metrics.scalars(values, step, self.source, ts_ns or self.ts_ns)

    def text(self, tag: str, text: str, step: Any, ts_ns: int = 0) -> None:
        self._recorder.metrics.text(tag, text, step, self.source, ts_ns or self.ts_ns)

    def hyperparameters(self, values: Mapping[str, Any]) -> None:
        if values:
            self._recorder.metrics.hyperparameters(values, self.source)

    def lineage(self, kind: str, values: Mapping[str, Any]) -> None:
        if values:
            self._recorder.metrics.lineage(kind, values, source=self.source)

    def submit(self, job: Job, size: int) -> None:
        self._recorder.metrics.submit(job, size)


@contextlib.contextmanager
def installing(active: Recorder, package: str) -> Iterator[None]:
    """Wrapping may fail for a version of the logger that is made otherwise; it works on then."""
    global _last
    if _last is not active:
        _last = active
        active.on_close.append(lambda: _remove(active))
    try:
        yield
    except Exception as error:
        _warn(active, package, error)


def wrap(owner: Any, name: str, source: str, take: Take, *, is_before: bool = False) -> None:
    """`take` is given Values and the arguments of the call, once it has returned.

    With `is_before` it is given them before the call, which may change them.
    """
    original = vars(owner).get(name)
    if original is None:
        raise AttributeError(f"{getattr(owner, '__qualname__', owner.__name__)}.{name}")
    if hasattr(original, "_strobe_logger"):
        return

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        active = recorder.current
        thread = get_ident()
        if active is None or active.is_off or thread in _inside:
            return original(*args, **kwargs)
        ts_ns = monotonic_ns()
        if is_before:
            _taken(take, Values(active, source, ts_ns, None), args, kwargs)
        try:
            _inside.add(thread)
            result = original(*args, **kwargs)
        finally:
            _inside.discard(thread)
        if not is_before:
            _taken(take, Values(active, source, ts_ns, result), args, kwargs)
        return result

    method._strobe_logger = True  # type: ignore[attr-defined]
    setattr(owner, name, method)
    _undo.append(lambda: _restore(owner, name, method, original))


def named(owner: Any, name: str, take: Take) -> Take:
    """A `take` that is given the arguments of this method by name, as a dictionary."""
    signature = inspect.signature(vars(owner)[name])

    def take_named(values: Values, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        take(values, bound.arguments)

    return take_named


def _taken(take: Take, values: Values, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        take(values, *args, **kwargs)
    except Exception as error:
        _warn(values._recorder, values.source, error)


def _warn(active: Recorder, source: str, error: Exception) -> None:
    reason = f"{type(error).__name__}: {error}"
    what = notice("logger-values", logger=source, reason=reason)
    if what not in _warnings:
        _warnings.add(what)
        active.warn("metrics", what)


def _restore(owner: Any, name: str, method: Any, original: Any) -> None:
    """Something else may have wrapped the method meanwhile: that stays."""
    if vars(owner).get(name) is method:
        setattr(owner, name, original)


def _remove(closing: Recorder) -> None:
    global _last
    if recorder.current in (None, closing):
        while _undo:
            _undo.pop()()
        if _last is closing:
            _last = None


def _write_at_exit(active: Recorder) -> None:
    """A script that logs but never trains is recorded, too, if no other process trains.

    Before the interpreter refuses to start threads, which write.
    """
    if active in _unclaimed or not _is_main_process():
        return
    _unclaimed.append(active)
    pid = os.getpid()
    with contextlib.suppress(RuntimeError):  # the interpreter is already ending
        threading._register_atexit(lambda: _claim(active, pid))  # type: ignore[attr-defined]


def _claim(active: Recorder, pid: int) -> None:
    is_known = active.rank is not None or active.is_off or not active.metrics.is_used
    if is_known or pid != os.getpid():
        return
    try:
        if _has_other_ranks(active):
            script = os.path.basename(getattr(sys, "argv", [""])[0]) or "python"
            ranks.leave_word(active.run, notice("logged-elsewhere", script=script))
        else:
            active.begin_training()
    except Exception as error:
        active.broke("at_exit", error)


def _has_other_ranks(active: Recorder) -> bool:
    """Whether another process trains, as far as this one can know."""
    own = ranks.of_this_process().rank
    pattern = "rank_*" if own is None else f"rank_{own}"
    return any(active.run.glob(pattern))


def _is_main_process() -> bool:
    processes = sys.modules.get("multiprocessing.process")
    return processes is None or processes.parent_process() is None


def time_of(values: Values, walltime: Any) -> int:
    """The moment that a script names in seconds since 1970, on the clock of the recording."""
    if walltime is None:
        return values.ts_ns
    return monotonic_ns() - time_ns() + int(float(walltime) * 1e9)


def is_number(value: Any) -> bool:
    """A number of Python or numpy, or a tensor or array of one element."""
    if value.__class__ in PLAIN:
        return True
    if isinstance(value, (str, bytes, Mapping, list, tuple)) or value is None:
        return False
    size = getattr(value, "size", None)
    size = getattr(value, "numel", size) if callable(size) else size  # torch: size is a method
    size = size() if callable(size) else size
    return size == 1 if isinstance(size, int) else hasattr(value, "__float__")
