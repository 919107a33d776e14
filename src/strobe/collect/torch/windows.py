"""Windows of full recording of PyTorch, by driving torch.profiler.

torch.profiler has traps that we avoid: two profilers at once or an exception in its handler crash
the process (so ours defers to the user's own, and has no handler); names that are not plain ASCII
are lost or break its JSON (so they are written as numbers, with a list next to the trace); names of
modules are not in its trace (so each module call is a span of its own, also numbered).
"""

import contextlib
import json
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from strobe.collect.host import hardware_counters
from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.torch.calls import CallCode
from strobe.collect.torch.names import Names
from strobe.collect.torch.spans import OpenSpans, guard
from strobe.collect.window_export import compress, why_unwritten
from strobe.collect.windows import Windows
from strobe.model.options import Options

# The default window records about this many events at most: until they are written, torch needs 2.3
# kB of memory for each. They are estimated from the nodes of autograd's graph, which torch counts
# anyway; each represents about sixteen events, of both passes and nested.
_MOST_EVENTS = 400_000
_EVENTS_PER_NODE = 16


class TorchWindows(Windows):
    FRAMEWORK = "torch"
    IS_BOUNDED = True

    def __init__(self, recorder: Recorder, steps: StepCount) -> None:
        super().__init__(recorder, steps)
        self.calls: CallCode | None = None
        # The code of module calls refers to these two, so they stay the same objects.
        self._labels: dict[int, str] = {}
        self._spans = OpenSpans()
        self._names = Names(self._labels)
        self._guards: list[Any] = []
        # A profiler that cannot be stopped; kept, because deleting it prints a warning.
        self._abandoned: Any = None
        # The user's own profilers that are warming up or recording.
        self._others: weakref.WeakSet[Any] = weakref.WeakSet()
        self._had_others = False
        self._is_starting = False
        # The number of nodes of autograd's graph that this thread has created so far.
        self._nodes: Callable[[], int] = int
        self._most_nodes = 0

    @property
    def has_others(self) -> bool:
        """Whether the script has an active profiler of its own."""
        return bool(self._others)

    def hindrance(self) -> str:
        import torch

        if self._others or torch.autograd._profiler_enabled():
            return notice("another-profiler", name="torch.profiler")
        return ""

    def start_profiler(self, options: Options) -> Any:
        import torch

        profiler = torch.profiler.profile(
            activities=_activities(torch, options.profile_device),
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory or options.sample_rate > 0,
            with_stack=options.with_stack,
            **hardware_counters.of_kernels(torch, options),
        )
        self._names = Names(self._labels)
        self._guards.append(guard(torch, self._spans, self._names.plain))
        self._is_starting = True
        try:
            with _without_compiler(torch):
                profiler.start()
        except Exception:
            self._unguard()
            raise
        finally:
            self._is_starting = False
        return profiler

    def began(self, options: Options) -> None:
        if not self._most_nodes:  # the first piece of the default window, or of another
            self._nodes = _node_counter()
            self._most_nodes = self._nodes() + _MOST_EVENTS // _EVENTS_PER_NODE
        self._spans.begin()
        if self.calls is not None and options.modules:
            self.calls.use(self.calls.full)

    def went_backward(self) -> None:
        """After each backward pass in a window: a step with several may be too much."""
        is_over = self._is_recording_here() and self._nodes() > self._most_nodes
        if is_over and self._is_default():
            self.end()
            self._end_default(f"it recorded about {_MOST_EVENTS:,} events")

    def _is_recording_here(self) -> bool:
        return self._profiler is not None and threading.get_ident() == self._thread

    def stop_profiler(self, profiler: Any) -> Any:
        try:
            if self.calls is not None:
                self.calls.use(self.calls.light)
            self._spans.end()
            self._names.end()
            self._unguard()
        finally:  # if left running, it crashes the process at its end
            profiler.stop()
        return profiler, self._names

    def write(self, recorded: Any, stem: Path) -> tuple[Path, int]:
        profiler, names = recorded
        plain, packed = Path(f"{stem}.trace.json"), Path(f"{stem}.trace.json.gz")
        with open(f"{stem}.names.json", "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(names.to_json(), file, ensure_ascii=False)
        profiler.export_chrome_trace(str(plain))
        size = plain.stat().st_size if plain.exists() else 0
        if not size:
            # torch prints "Failed to write" on stderr and returns.
            for leftover in plain.parent.glob(f"{plain.name}*"):
                leftover.unlink()
            raise OSError(why_unwritten(plain.parent) or self._why_empty())
        compress(plain, packed)
        return packed, size

    def _why_empty(self) -> str:
        if self._had_others:
            return "torch.profiler wrote no trace, because the script's own profiler took over"
        return "torch.profiler wrote no trace, and does not say why"

    def abandon(self, profiler: Any) -> None:
        """torch continues to record."""
        self._abandoned = profiler
        _leave_without_destructors()

    def after_fork_in_child(self, steps: StepCount) -> None:
        if self._number:
            _leave_without_destructors()
        super().after_fork_in_child(steps)
        self._spans.of_thread.clear()

    def know_root(self, module: Any) -> None:
        """A window that begins inside a root's call would treat its submodules as roots."""
        if self._profiler is not None:
            self._names.label(module)

    def in_calls(self, torch: Any) -> dict[str, Any]:
        """What the code of a module call needs to put a span around it."""
        return {
            "_strobe_open": self._spans.of_thread,
            "_strobe_labels": self._labels,
            "_strobe_label": self._label,
            "_strobe_new_span": torch._C._profiler._RecordFunctionFast,
            "_strobe_left": self._spans.leave,
        }

    def _label(self, module: Any) -> str:
        return self._names.label(module)

    def give_way(self, torch: Any) -> Callable[[], None]:
        """Detect the user's own profilers, from their warm-up on; returns the undo."""
        cls = torch.autograd.profiler.profile
        prepare, leave = cls._prepare_trace, cls.__exit__
        began = self.recorder.guarded(self.other_began)
        others = self._others

        def _prepare_trace(self: Any) -> Any:
            began(self)
            return prepare(self)

        def __exit__(self: Any, *args: Any) -> Any:
            others.discard(self)
            return leave(self, *args)

        cls._prepare_trace, cls.__exit__ = _prepare_trace, __exit__

        def undo() -> None:
            cls._prepare_trace, cls.__exit__ = prepare, leave

        return undo

    def other_began(self, profiler: Any) -> None:
        if self._is_starting:  # it is ours
            return
        self._others.add(profiler)
        self._had_others = True
        if self._profiler is not None:
            self._defer(notice("deferred", name="torch.profiler"))

    def _unguard(self) -> None:
        while self._guards:
            self._guards.pop()()


@contextlib.contextmanager
def _without_compiler(torch: Any) -> Iterator[None]:
    """Start torch.profiler without importing the compiler: 900 modules, seconds of CPU time.

    It accesses `torch._inductor`, which imports it, to learn whether torch.compile uses CUDA
    graphs. If nothing has imported it yet, nothing uses it.
    """
    lazy = vars(torch).get("__getattr__")
    if lazy is None or "torch._inductor" in sys.modules:
        yield
        return
    thread = threading.get_ident()

    def __getattr__(name: str) -> Any:
        if name == "_inductor" and threading.get_ident() == thread:
            raise AttributeError(name)
        return lazy(name)

    torch.__getattr__ = __getattr__
    try:
        yield
    finally:
        torch.__getattr__ = lazy


def _leave_without_destructors() -> None:
    """A child forked from a process that ever used torch.profiler does not terminate.

    Kineto's destructors wait there for a thread that only the parent has (torch 2.13). So, once
    Python is done, the process exits with its exit code before they are called.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # a C library without on_exit
        libc = ctypes.CDLL(None)
        libc.on_exit(libc._exit, None)
        libc.on_exit(libc._IO_flush_all, None)


def _node_counter() -> Callable[[], int]:
    try:
        from torch._C._autograd import _get_sequence_nr
    except ImportError:  # an unknown release of torch: only the cost of a piece limits a window
        return int
    counter: Callable[[], int] = _get_sequence_nr
    return counter


def _activities(torch: Any, of_devices: bool = True) -> list[Any]:
    kinds = torch.profiler.ProfilerActivity
    chosen = [kinds.CPU]
    if not of_devices:
        return chosen
    supported = torch.profiler.supported_activities()
    for name in ("CUDA", "XPU", "MTIA", "PrivateUse1"):
        kind = getattr(kinds, name, None)
        if kind is not None and kind in supported:
            chosen.append(kind)
    return chosen
