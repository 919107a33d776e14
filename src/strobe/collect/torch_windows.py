"""Windows of full recording: torch.profiler driven by us, its trace written off the loop.

torch.profiler has traps that we go round: two profilers at once or an exception in its handler
crash the process (so ours yields to the user's own, and has no handler); names that are not plain
ASCII are lost or break its JSON (so they travel as numbers, with a list beside the trace); names of
modules are not in its trace (so each module call is a span of its own, numbered likewise).
"""

import gzip
import json
import os
import queue
import shutil
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.torch_calls import CallCode
from strobe.model.journal import Mark
from strobe.model.options import MEGABYTE

# A window is cut into pieces so that memory stays bounded (torch keeps 2.3 kB an event until it
# is exported) and a killed process loses only the piece being recorded.
_FIRST_PIECE_STEPS = 8
_PIECE_BYTES = 40 * MEGABYTE

# Of the disk, this much is left for the user's own checkpoints.
_RESERVE_BYTES = 1 << 30
_RESERVE_SHARE = 0.05

_NEEDS_TOKEN = frozenset('"\\')


class Windows:
    def __init__(self, recorder: Recorder, steps: StepCount) -> None:
        self.recorder, self._steps = recorder, steps
        self.calls: CallCode | None = None
        self._profiler: Any = None
        self._thread = 0
        self._seen_step = 0
        self._number = 0
        self._piece_steps = _FIRST_PIECE_STEPS
        self._piece_began_at = 0
        self._written_bytes = 0
        self._is_over = recorder.options.light
        self._names = _Names()
        self._exporter: _Exporter | None = None
        self._guards: list[Any] = []

    @property
    def is_recording(self) -> bool:
        return self._profiler is not None

    def at_boundary(self) -> None:
        """Outside any operator, perhaps between two steps: begin or end a window if it is time."""
        step = self._steps.now
        if step == self._seen_step or self._is_over:
            return
        if self._profiler is not None and threading.get_ident() != self._thread:
            return
        self._seen_step = step
        wants = self.recorder.options.wants_full
        # The step before the window is recorded too: it takes the cost of starting up, and the
        # stretch between its end and our first chance to start is then inside.
        wanted = wants(step) or wants(step + 1)
        if self._profiler is None:
            if wanted:
                self.begin()
        elif not wanted or step - self._piece_began_at >= self._piece_steps:
            self.end()
            if wanted and not self._is_over:
                self.begin()

    def begin(self) -> None:
        import torch

        if torch.autograd._profiler_enabled():
            self._refuse("another profiler (torch.profiler) is active in this process: no window "
                         "of full recording was taken while it ran")  # fmt: skip
            return
        if not self._has_room():
            return
        began = time.monotonic_ns()
        options = self.recorder.options
        profiler = torch.profiler.profile(
            activities=_activities(torch),
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=options.with_stack,
        )
        self._names = _Names()
        self._enter_record_function = torch._C._profiler._RecordFunctionFast
        self._guard(torch)
        profiler.start()
        self._profiler, self._thread = profiler, threading.get_ident()
        self._number += 1
        self._piece_began_at = self._steps.now
        if self.calls is not None and options.modules:
            self.calls.use(self.calls.full)
        self.recorder.mark(Mark.WINDOW_BEGAN, 0, self._number)
        self._own_work(began)

    def end(self) -> None:
        """Stop recording; the trace is written by another thread."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        began = time.monotonic_ns()
        self.recorder.mark(Mark.WINDOW_ENDED, 0, self._number)
        if self.calls is not None:
            self.calls.use(self.calls.light)
        for undo in self._guards:
            undo()
        self._guards.clear()
        profiler.stop()
        self._own_work(began)
        if self._exporter is None:
            self._exporter = _Exporter(self)
        steps = (self._piece_began_at, self._steps.now)
        self._exporter.put(profiler, self._number, self._names, steps)

    def close(self) -> None:
        """At the end of the process: finish the window and wait until it is on disk."""
        self._is_over = True
        if self._profiler is not None and threading.get_ident() == self._thread:
            self.end()
        elif self._profiler is not None:
            self._profiler = None
            self.recorder.problem(
                "torch", "the last window was lost: the thread it recorded ended before it"
            )
        if self._exporter is not None:
            self._exporter.close()

    def enter_module(self, module: Any) -> Any:
        """A span of the module's number, entered; None while nothing is recorded."""
        if self._profiler is None:
            return None
        span = self._enter_record_function(f"strobe:{self._names.of_module(module)}")
        span.__enter__()
        return span

    def wrote(self, size: int, steps: int) -> None:
        """The exporter tells how large a piece became."""
        self._written_bytes += size
        self._piece_steps = max(1, min(1000, int(_PIECE_BYTES / max(1, size / max(1, steps)))))
        limit = self.recorder.options.timeline_limit * MEGABYTE
        if self._written_bytes >= limit:
            self._refuse(f"full recording ended early: its timeline reached timeline_limit "
                         f"({self.recorder.options.timeline_limit} MB); steps are still recorded",
                         over=True)  # fmt: skip

    def _own_work(self, began_ns: int) -> None:
        self.recorder.mark_at(began_ns, Mark.OWN_WORK, 0, time.monotonic_ns() - began_ns)

    def _has_room(self) -> bool:
        try:
            disk = shutil.disk_usage(self.recorder.run)
        except OSError:
            return True
        reserve = min(_RESERVE_BYTES, int(disk.total * _RESERVE_SHARE))
        if disk.free > reserve + _PIECE_BYTES // 10:
            return True
        self._refuse(f"no window of full recording: only {disk.free / MEGABYTE:.0f} MB are free "
                     f"in {self.recorder.run}", over=True)  # fmt: skip
        return False

    def _refuse(self, why: str, over: bool = False) -> None:
        self._is_over = self._is_over or over
        self.recorder.problem("torch", why)
        self.recorder.say(why)

    def _guard(self, torch: Any) -> None:
        """While ours records: the user's own profiler goes first, and odd names get a number."""
        autograd = torch.autograd.profiler
        prepare, enter = autograd.profile._prepare_trace, autograd.record_function.__enter__
        windows = self

        def _prepare_trace(self: Any) -> Any:
            if windows._profiler is not None and windows._profiler.profiler is not self:
                windows._is_over = True
                windows.recorder.guarded(windows.end)()
                windows._refuse("the script started a profiler of its own: full recording made way")
            return prepare(self)

        def __enter__(self: Any) -> Any:
            name = self.name
            self.name = windows._names.plain(name)
            try:
                return enter(self)
            finally:
                self.name = name

        autograd.profile._prepare_trace = _prepare_trace
        autograd.record_function.__enter__ = __enter__
        self._guards.append(lambda: setattr(autograd.profile, "_prepare_trace", prepare))
        self._guards.append(lambda: setattr(autograd.record_function, "__enter__", enter))


class _Names:
    """What stands behind the numbers in the trace of one window."""

    def __init__(self) -> None:
        self.modules: dict[int, dict[str, str]] = {}
        self.names: dict[str, str] = {}
        # By id, with a weak reference that tells a module from a later one at the same address.
        self._of_id: dict[int, tuple[Any, int]] = {}
        self._tokens: dict[str, str] = {}

    def of_module(self, module: Any) -> int:
        known = self._of_id.get(id(module))
        if known is None or known[0]() is not module:
            self._add_tree(module)
            known = self._of_id[id(module)]
        return known[1]

    def _add_tree(self, root: Any) -> None:
        """A module not seen before is a root: its parts are named below it."""
        for path, module in root.named_modules():
            known = self._of_id.get(id(module))
            if known is None or known[0]() is not module:
                number = len(self.modules) + 1
                self._of_id[id(module)] = (weakref.ref(module), number)
                self.modules[number] = {
                    "path": f"{_class_name(root)}.{path}" if path else _class_name(root),
                    "class": _class_name(module),
                }

    def plain(self, name: Any) -> Any:
        """A name that torch.profiler keeps as it is, or a token for one that it would not."""
        if not isinstance(name, str) or (
            name.isascii() and name.isprintable() and not _NEEDS_TOKEN.intersection(name)
        ):
            return name
        token = self._tokens.get(name)
        if token is None:
            token = self._tokens[name] = f"strobe#{len(self._tokens) + 1}"
            self.names[token] = name
        return token

    def to_json(self) -> dict[str, Any]:
        return {"modules": self.modules, "names": self.names}


class _Exporter:
    """Writes the traces of ended windows on a thread of its own; torch lets go of the GIL there."""

    def __init__(self, windows: Windows) -> None:
        self._windows, self._recorder = windows, windows.recorder
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="strobe-exporter", daemon=True)
        self._thread.start()

    def put(self, *window: Any) -> None:
        self._queue.put(window)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (window := self._queue.get()) is not None:
            try:
                self._export(*window)
            except Exception as error:
                self._recorder.problem("torch", f"a window of full recording was lost: {error}")
                self._recorder.say(f"a window of full recording was lost: {error}")

    def _export(self, profiler: Any, number: int, names: _Names, steps: tuple[int, int]) -> None:
        raw = self._recorder.raw
        if raw is None:  # nothing was trained, so there is no rank to keep it for
            return
        stem = raw / f"window-{number:04}"
        plain, packed = Path(f"{stem}.trace.json"), Path(f"{stem}.trace.json.gz")
        fact = {"type": "window", "number": number, "file": packed.name, "steps": list(steps)}
        self._recorder.journal.fact(**fact, state="exporting")
        with open(f"{stem}.names.json", "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(names.to_json(), file, ensure_ascii=False)
        profiler.export_chrome_trace(str(plain))
        size = plain.stat().st_size if plain.exists() else 0
        if not size:
            # torch says "Failed to write" on stderr and returns: the disk is full or read-only.
            for leftover in raw.glob(f"{plain.name}*"):
                leftover.unlink()
            raise OSError("torch could not write it; is the disk full?")
        self._windows.wrote(size, steps[1] - steps[0])
        _compress(plain, packed)
        self._recorder.journal.fact(**fact, state="complete", bytes=size)


def _compress(plain: Path, packed: Path) -> None:
    """Whole or not at all: the plain file goes only when the packed one is there."""
    temporary = packed.with_name(f".{packed.name}")
    try:
        with open(plain, "rb") as source, gzip.open(temporary, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        os.replace(temporary, packed)
        plain.unlink()
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _activities(torch: Any) -> list[Any]:
    kinds = torch.profiler.ProfilerActivity
    chosen = [kinds.CPU]
    supported = torch.profiler.supported_activities()
    for name in ("CUDA", "XPU", "MTIA", "PrivateUse1"):
        kind = getattr(kinds, name, None)
        if kind is not None and kind in supported:
            chosen.append(kind)
    return chosen


def _class_name(module: Any) -> str:
    return type(module).__name__
