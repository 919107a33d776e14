"""Windows of full recording: when they begin, end and are cut, whatever profiler records them.

A framework's own class (`torch/windows.py`, ...) starts and stops its profiler and writes what it
recorded; everything else about windows is here.
"""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.collect.faults import fault_text
from strobe.collect.notices import notice
from strobe.collect.on_demand.window import AskedWindow
from strobe.collect.recorder import Recorder
from strobe.collect.steps import StepCount
from strobe.collect.window_export import Ended, Exporter
from strobe.model.journal import Mark
from strobe.model.options import MEGABYTE, Options

# A window is cut into pieces so that memory stays bounded (torch keeps 2.3 kB per event until it is
# exported), a killed process loses only the current piece, and little is left to stop, write and
# read if training ends with the window.
_PIECE_BYTES = 6 * MEGABYTE

# Disk space left free for the user's own checkpoints.
_RESERVE_BYTES = 1 << 30
_RESERVE_SHARE = 0.05

# The default window may cost this much at most: CPU seconds to stop the profiler and to write what
# it recorded, or a share of the time since training began, whichever is more. Writing takes other
# threads about this multiple of the time that stopping takes (torch 2.13, with shapes).
_FREE_COST_S = 1.0
_COST_SHARE = 0.05
_COST_OF_WRITING = 0.6

# How long the end of the process waits for a step of another thread.
_PATIENCE_S = 1.0


class Windows:
    FRAMEWORK = ""
    FIRST_PIECE_STEPS = 3
    # Whether pieces end and begin between two steps, so that no operator is lost between them.
    IS_SEAMLESS = True
    # Whether the default window ends early if it costs too much.
    IS_BOUNDED = False

    def __init__(self, recorder: Recorder, steps: StepCount) -> None:
        self.recorder, self._steps = recorder, steps
        # The framework's profiler while it records.
        self._profiler: Any = None
        self._thread = 0
        self._seen_done = -1
        self._number = 0
        self._piece_steps = self.FIRST_PIECE_STEPS
        self._piece_began_at = 0
        self._written_bytes = 0
        self._made_ns = time.monotonic_ns()
        self._cost_ns = 0  # CPU time of stopping the profiler in the default window
        # Whether no window can come any more, and whether none of those in the options can. A
        # window on demand may then still come.
        self._is_over = False
        self._is_done = not recorder.options.takes_windows
        # The windows on demand, and the one being recorded, if it is one of those.
        self.asked: list[AskedWindow] = []
        self._recorded: AskedWindow | None = None
        self._exporter: Exporter | None = None
        self._with_thread = threading.local()

    # To be implemented by frameworks

    def hindrance(self) -> str:
        """Why no window can begin now; empty if one can."""
        return ""

    def start_profiler(self, options: Options) -> Any:
        """Returns what records from now on; it is kept until `stop_profiler`."""
        raise NotImplementedError

    def began(self, options: Options) -> None:
        """Called when a window begins."""

    def stop_profiler(self, profiler: Any) -> Any:
        """Stops recording under all circumstances; returns what `write` is to write."""
        raise NotImplementedError

    def write(self, recorded: Any, stem: Path) -> tuple[Path, int]:
        """Called on another thread: write a file that begins with `stem`, all or nothing.

        Returns it, and the uncompressed bytes of its trace. Raises OSError.
        """
        raise NotImplementedError

    def abandon(self, profiler: Any) -> None:
        """The profiler cannot be stopped: its thread is stuck, or belongs to the parent process."""

    # Timing

    @property
    def is_recording(self) -> bool:
        return self._profiler is not None

    def at_boundary(self) -> None:
        """Called outside any operator, usually between two steps: begin or end a window if it is
        time.
        """
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
        # The step before the window is recorded too: it absorbs the cost of starting up, and the
        # time between its end and our first chance to start is then inside the window.
        wanted = asked is not None or (not is_over and not self._is_done and self._has_come(step))
        if self._profiler is None:
            if wanted:
                self.begin(asked)
            elif is_over or self._is_done or self.recorder.options.wants_no_more(step):
                self._rest()
        elif not wanted or asked is not self._recorded or self._is_long(step):
            goes_on = wanted and asked is self._recorded
            self.end(goes_on)
            if wanted and not self._costs_too_much():
                self.begin(asked, goes_on)

    def ask(self, window: AskedWindow) -> None:
        """Called by another thread than the training's, which looks at the next boundary."""
        self.asked.append(window)
        self._steps.is_watched = True

    def ask_now(self, window: AskedWindow) -> None:
        """Called by the training thread itself, between two steps."""
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
        wants, rank = self.recorder.options.wants_full, self.recorder.likely_rank()
        return wants(step, rank) or wants(step + 1, rank)

    def _is_long(self, step: int) -> bool:
        return step - self._piece_began_at >= self._piece_steps

    def _is_default(self) -> bool:
        """Whether the window being recorded is the default one."""
        options = self.recorder.options
        has_steps = options.steps or options.every or options.whole or options.schedule
        return self.IS_BOUNDED and self._recorded is None and not has_steps

    def _costs_too_much(self) -> bool:
        """Checked between two pieces: if so, the default window ends here."""
        if not self._is_default():
            return False
        passed_s = (time.monotonic_ns() - self._made_ns) / 1e9
        cost_s = self._cost_ns * (1 + _COST_OF_WRITING) / 1e9
        if cost_s <= max(_FREE_COST_S, _COST_SHARE * passed_s):
            return False
        self._end_default(f"it used {cost_s:.1f} s of CPU time")
        return True

    def _end_default(self, why: str) -> None:
        self._is_done = True
        step = self._steps.now
        self.recorder.problem(
            self.FRAMEWORK,
            f"full recording ended at step {step}: {why}. To record more, choose the steps with "
            "--steps FIRST:END",
        )

    def _rest(self) -> None:
        """Stop checking at every step until a window is requested."""
        self._steps.is_watched = False
        if self.asked:  # a request came at this very moment
            self._steps.is_watched = True

    def begin(self, asked: AskedWindow | None = None, goes_on: bool = False) -> None:
        self._recorded = asked
        if asked is not None and not goes_on:
            self._written_bytes = 0
        hindrance = self.hindrance()
        if hindrance:
            self._refuse(hindrance)
            return
        if not self._has_room():
            return
        began = time.monotonic_ns()
        options = self.recorder.options if asked is None else asked.options
        try:
            self._profiler, self._thread = self.start_profiler(options), threading.get_ident()
        except Exception as error:  # an unknown release of the framework; light recording goes on
            reason = fault_text(error)
            why = notice("profiler-did-not-start", framework=self.FRAMEWORK, reason=reason)
            self._refuse(why, for_good=True)
            return
        if not hasattr(self._with_thread, "end"):
            self._with_thread.end = _AtEnd(self._end_with_thread)
        self._number += 1
        self._piece_began_at = self._steps.now
        if asked is not None:
            self.recorder.journal.fact(**asked.begun(self._steps.now), window=self._number)
        self.began(options)
        self.recorder.mark(Mark.WINDOW_BEGAN, int(goes_on and self.IS_SEAMLESS), self._number)
        self._own_work(began)

    def end(self, goes_on: bool = False) -> None:
        """Stop recording; another thread writes the trace."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        began, began_cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        try:
            self.recorder.mark(Mark.WINDOW_ENDED, 0, self._number)
        finally:
            recorded = self.stop_profiler(profiler)
        if self._is_default():
            self._cost_ns += time.thread_time_ns() - began_cpu_ns
        if self._exporter is None:
            self._exporter = Exporter(
                self.recorder, self.FRAMEWORK, self.write, self.wrote, self.lost
            )
        steps = (self._piece_began_at, self._steps.now)
        self._exporter.put(Ended(recorded, self._number, steps))
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
                    self.stop_profiler(profiler)
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
            profiler, self._profiler = self._profiler, None
            self.abandon(profiler)
            self.recorder.problem(
                self.FRAMEWORK,
                "the last window was lost: the thread it recorded did not come to its end",
            )

    def _end_with_thread(self) -> None:
        if threading.get_ident() == self._thread:
            self.recorder.guarded(self.end)()

    def after_fork_in_child(self, steps: StepCount) -> None:
        """The window and the thread that writes it belong to the parent; the child has neither."""
        self._steps = steps
        if self._profiler is not None:
            self._is_over = True
            self.abandon(self._profiler)
            self.recorder.problem(
                self.FRAMEWORK,
                "no window of full recording: this process was forked while its parent recorded "
                "one",
            )
        self._profiler = self._exporter = self._recorded = None
        self.asked.clear()
        self._seen_done = -1
        self._number = self._written_bytes = 0

    def wrote(self, size: int, steps: int) -> None:
        """Called by the exporter with the size of a piece."""
        self._written_bytes += size
        limit = self.recorder.options.timeline_limit * MEGABYTE
        room = min(_PIECE_BYTES, limit - self._written_bytes)
        self._piece_steps = max(1, min(1000, int(room / max(1, size / max(1, steps)))))
        if self._written_bytes >= limit:
            limit_mb = self.recorder.options.timeline_limit
            self._refuse(notice("timeline-limit", limit=limit_mb), for_good=True)

    @property
    def has_begun_any(self) -> bool:
        """Whether any window began in this process."""
        return self._number > 0

    @property
    def are_written(self) -> bool:
        """Whether every window that ended is on disk."""
        return self._exporter is None or self._exporter.is_idle

    def lost(self) -> None:
        """A piece could not be written: no further window begins."""
        self._is_over = True

    def retire(self) -> None:
        """Another framework trains in this process: its windows are used instead."""
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
        free = f"{disk.free / MEGABYTE:.0f}"
        why = notice("no-room-for-window", free=free, run=self.recorder.run)
        self._refuse(why, for_good=True)
        return False

    def _refuse(self, why: str, for_good: bool = False) -> None:
        if self._recorded is not None:
            self._recorded.refuse(why)
            if self._profiler is None:
                self._recorded = None
        else:
            self._is_done = self._is_done or for_good
        self.recorder.problem(self.FRAMEWORK, why)
        self.recorder.say(why)

    def _defer(self, why: str) -> None:
        """Defer to another profiler, which records from now on."""
        self._is_done = True
        recorded = self._recorded
        self.end()
        self._recorded = recorded
        self._refuse(why)


class _AtEnd:
    """Thread-local, so it is deleted when its thread ends."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def __del__(self) -> None:
        self._call()
