"""Windows of full recording: torch.profiler driven by us, its trace written off the loop.

torch.profiler has traps that we go round: two profilers at once or an exception in its handler
crash the process (so ours yields to the user's own, and has no handler); names that are not plain
ASCII are lost or break its JSON (so they travel as numbers, with a list beside the trace); names of
modules are not in its trace (so each module call is a span of its own, numbered likewise).
"""

import contextlib
import shutil
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from strobe.collect import hardware
from strobe.collect.dynamic_window import AskedWindow
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.torch_calls import CallCode
from strobe.collect.torch_export import Exporter
from strobe.collect.torch_names import Names
from strobe.collect.torch_spans import OpenSpans, guard
from strobe.model.journal import Mark
from strobe.model.options import MEGABYTE

# A window is cut into pieces so that memory stays bounded (torch keeps 2.3 kB an event until it
# is exported), a killed process loses only the piece being recorded, and little is left to stop,
# write and read when training ends with the window.
_FIRST_PIECE_STEPS = 3
_PIECE_BYTES = 6 * MEGABYTE

# Of the disk, this much is left for the user's own checkpoints.
_RESERVE_BYTES = 1 << 30
_RESERVE_SHARE = 0.05

# How long the end of the process waits for a step of another thread.
_PATIENCE_S = 1.0


class Windows:
    def __init__(self, recorder: Recorder, steps: StepCount) -> None:
        self.recorder, self._steps = recorder, steps
        self.calls: CallCode | None = None
        self._profiler: Any = None
        self._thread = 0
        self._seen_done = -1
        self._number = 0
        self._piece_steps = _FIRST_PIECE_STEPS
        self._piece_began_at = 0
        self._written_bytes = 0
        # Whether no window can come any more; and whether none of those that the options tell of
        # can. One that is asked for while training runs may then still come.
        self._is_over = False
        self._is_done = not recorder.options.takes_windows
        # The windows that were asked for, and the one being recorded, if that was asked for.
        self.asked: list[AskedWindow] = []
        self._recorded: AskedWindow | None = None
        # The code of module calls holds on to these two: they stay the same objects.
        self._labels: dict[int, str] = {}
        self._spans = OpenSpans()
        self._names = Names(self._labels)
        self._exporter: Exporter | None = None
        self._guards: list[Any] = []
        self._parents: Any = None
        # The user's own profilers that are warming up or recording.
        self._others: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_starting = False
        self._with_thread = threading.local()

    @property
    def is_recording(self) -> bool:
        return self._profiler is not None

    def at_boundary(self) -> None:
        """Outside any operator, perhaps between two steps: begin or end a window if it is time."""
        if self._profiler is not None and threading.get_ident() != self._thread:
            return
        self._steps.is_new = False
        done = self._steps.done
        if done == self._seen_done:
            return
        self._seen_done = done
        step = done + 1
        is_over = self._is_over or self.recorder.is_off
        asked = None if is_over else self._asked_for(step)
        # The step before the window is recorded too: it takes the cost of starting up, and the
        # stretch between its end and our first chance to start is then inside.
        wanted = asked is not None or (not is_over and not self._is_done and self._has_come(step))
        if self._profiler is None:
            if wanted:
                self.begin(asked)
            elif is_over or self._is_done:
                self._rest()
        elif not wanted or asked is not self._recorded or self._is_long(step):
            goes_on = wanted and asked is self._recorded
            self.end(goes_on)
            if wanted:
                self.begin(asked, goes_on)

    def ask(self, window: AskedWindow) -> None:
        """Called by another thread than the training's, which looks at the next boundary."""
        self.asked.append(window)
        self._steps.is_watched = True

    def ask_now(self, window: AskedWindow) -> None:
        """Called by the training itself, between two steps."""
        self.ask(window)
        self._seen_done = -1
        self.at_boundary()

    def end_now(self, window: AskedWindow) -> None:
        if window in self.asked:
            self.asked.remove(window)
        if self._recorded is window and threading.get_ident() == self._thread:
            self.end()

    def _asked_for(self, step: int) -> AskedWindow | None:
        for asked in tuple(self.asked):
            if not asked.is_due(step):
                continue
            if asked.takes(step):
                return asked
            self.asked.remove(asked)
        return None

    def _has_come(self, step: int) -> bool:
        wants = self.recorder.options.wants_full
        return wants(step) or wants(step + 1)

    def _is_long(self, step: int) -> bool:
        return step - self._piece_began_at >= self._piece_steps

    def _rest(self) -> None:
        """Need not be asked at every step, until a window is asked for."""
        self._steps.is_watched = False
        if self.asked:  # it came in this very moment
            self._steps.is_watched = True

    def begin(self, asked: AskedWindow | None = None, goes_on: bool = False) -> None:
        import torch

        self._recorded = asked
        if asked is not None and not goes_on:
            self._written_bytes = 0
        if self._others or torch.autograd._profiler_enabled():
            self._refuse("another profiler (torch.profiler) is active in this process: no window "
                         "of full recording was taken while it ran")  # fmt: skip
            return
        if not self._has_room():
            return
        began = time.monotonic_ns()
        options = self.recorder.options if asked is None else asked.options
        profiler = torch.profiler.profile(
            activities=_activities(torch, options.profile_device),
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory or options.sample_rate > 0,
            with_stack=options.with_stack,
            **hardware.of_kernels(torch, options),
        )
        self._names = Names(self._labels)
        self._guards.append(guard(torch, self._spans, self._names.plain))
        self._is_starting = True
        try:
            profiler.start()
        finally:
            self._is_starting = False
        self._profiler, self._thread = profiler, threading.get_ident()
        self._spans.begin()
        if not hasattr(self._with_thread, "end"):
            self._with_thread.end = _AtEnd(self._end_with_thread)
        self._number += 1
        self._piece_began_at = self._steps.now
        if asked is not None:
            self.recorder.journal.fact(**asked.begun(self._steps.now), window=self._number)
        if self.calls is not None and options.modules:
            self.calls.use(self.calls.full)
        self.recorder.mark(Mark.WINDOW_BEGAN, int(goes_on), self._number)
        self._own_work(began)

    def end(self, goes_on: bool = False) -> None:
        """Stop recording; the trace is written by another thread."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        began = time.monotonic_ns()
        try:
            self.recorder.mark(Mark.WINDOW_ENDED, 0, self._number)
            if self.calls is not None:
                self.calls.use(self.calls.light)
            self._spans.end()
            self._names.end()
            self._unguard()
        finally:  # left running, it crashes the process at its end
            profiler.stop()
        if self._exporter is None:
            self._exporter = Exporter(self.recorder, self.wrote, self.lost)
        steps = (self._piece_began_at, self._steps.now)
        self._exporter.put(profiler, self._number, self._names, steps)
        self._own_work(began)
        if self._recorded is not None and not goes_on:
            self._recorded.end(self._steps.now)
            self._recorded = None

    def close(self) -> None:
        """At the end of the process: finish the window and wait until it is on disk."""
        self._is_over = True
        if self._profiler is not None and threading.get_ident() == self._thread:
            profiler = self._profiler
            try:
                self.end()
            except Exception:
                if self._profiler is not None:
                    profiler.stop()
                raise
        elif self._profiler is not None:
            self._wait_for_thread()
        if self._exporter is not None:
            self._exporter.close()

    def _wait_for_thread(self) -> None:
        """Only the thread that began a window can end it; it does so at its next boundary."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._profiler is not None and time.monotonic() < deadline:
            time.sleep(0.005)
        if self._profiler is not None:
            self._parents, self._profiler = self._profiler, None
            _leave_without_destructors()
            self.recorder.problem(
                "torch", "the last window was lost: the thread it recorded did not come to its end"
            )

    def _end_with_thread(self) -> None:
        if threading.get_ident() == self._thread:
            self.recorder.guarded(self.end)()

    def after_fork_in_child(self, steps: StepCount) -> None:
        """The window and the thread that writes it are the parent's; the child has neither."""
        self._steps = steps
        if self._profiler is not None:
            # torch goes on recording in the child; it is kept, for its end is a warning there.
            self._parents, self._is_over = self._profiler, True
            self.recorder.problem("torch", "no window of full recording: this process was forked "
                                  "while its parent recorded one")  # fmt: skip
        if self._number:
            _leave_without_destructors()
        self._profiler = self._exporter = self._recorded = None
        self.asked.clear()
        self._spans.of_thread.clear()
        self._seen_done = -1
        self._number = self._written_bytes = 0

    def know_root(self, module: Any) -> None:
        """A window that begins inside a root's call would take its parts for roots."""
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

    def wrote(self, size: int, steps: int) -> None:
        """The exporter tells how large a piece became."""
        self._written_bytes += size
        self._piece_steps = max(1, min(1000, int(_PIECE_BYTES / max(1, size / max(1, steps)))))
        limit = self.recorder.options.timeline_limit * MEGABYTE
        if self._written_bytes >= limit:
            self._refuse(f"full recording ended early: its timeline reached timeline_limit "
                         f"({self.recorder.options.timeline_limit} MB); steps are still recorded",
                         for_good=True)  # fmt: skip

    @property
    def are_written(self) -> bool:
        """Whether every window that ended is on disk."""
        return self._exporter is None or self._exporter.is_idle

    def lost(self) -> None:
        """A piece could not be written: no further one is begun."""
        self._is_over = True

    def _own_work(self, began_ns: int) -> None:
        self.recorder.mark(Mark.OWN_WORK, 0, time.monotonic_ns() - began_ns, began_ns)

    def _has_room(self) -> bool:
        try:
            disk = shutil.disk_usage(self.recorder.run)
        except OSError:
            return True
        reserve = min(_RESERVE_BYTES, int(disk.total * _RESERVE_SHARE))
        if disk.free > reserve + _PIECE_BYTES:
            return True
        self._refuse(f"no window of full recording: only {disk.free / MEGABYTE:.0f} MB are free "
                     f"in {self.recorder.run}", for_good=True)  # fmt: skip
        return False

    def _refuse(self, why: str, for_good: bool = False) -> None:
        if self._recorded is not None:
            self._recorded.refuse(why)
            if self._profiler is None:
                self._recorded = None
        else:
            self._is_done = self._is_done or for_good
        self.recorder.problem("torch", why)
        self.recorder.say(why)

    def give_way(self, torch: Any) -> Callable[[], None]:
        """Know of the user's own profilers, from their warm-up on; returns what undoes it."""
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
        if self._profiler is not None:
            self._is_done = True
            recorded = self._recorded
            self.end()
            self._recorded = recorded
            self._refuse("the script started a profiler of its own: full recording made way")

    def _unguard(self) -> None:
        while self._guards:
            self._guards.pop()()


class _AtEnd:
    """Kept as a thread's own, it is deleted by that thread as it ends."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def __del__(self) -> None:
        self._call()


def _leave_without_destructors() -> None:
    """A child forked from a process that ever used torch.profiler does not come to its end.

    Kineto's destructors wait there for a thread that only the parent has (torch 2.13). So, once
    Python is done, the process leaves with its exit code before they are called.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # a C library without on_exit
        libc = ctypes.CDLL(None)
        libc.on_exit(libc._exit, None)
        libc.on_exit(libc._IO_flush_all, None)


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
