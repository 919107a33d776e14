"""The recorder of this process: where marks go, which rank it is, and how it ends.

It never raises into training: an error of Strobe is reported once on stderr, recorded in the run,
and ends the recording, not the training.
"""

import dataclasses
import os
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from strobe.collect import notices, ranks
from strobe.collect.faults import Unseen, fault_text
from strobe.collect.host import hardware_counters
from strobe.collect.host.core_users import CoreUsers
from strobe.collect.host.sampler import Sampler
from strobe.collect.host.stack_samples import StackSampler
from strobe.collect.journal import Journal
from strobe.collect.metrics.log import MetricLog
from strobe.collect.places import Places, full_path
from strobe.collect.start import checks
from strobe.model.metric_journal import OF_PROCESS
from strobe.model.options import Options

Function = TypeVar("Function", bound=Callable[..., Any])


class Recorder:
    """At most one per process: see `current`."""

    def __init__(
        self, run: Path, options: Options, owner: str, find: Callable[[], Path] | None = None
    ) -> None:
        """`find` creates or finds the run's folder when it is first needed."""
        self._run, self._find, self.options, self.owner = run, find, options, owner
        # Set by a framework whose device runs behind the script: it marks waits for data (loader,
        # batches ready, requested when, outcome) during which the device was idle.
        self.waited: Callable[[int, int, int, int], None] | None = None
        # Warnings to print once this process is known to train: options that cannot be followed.
        self.notes: list[str] = []
        # Options that were given explicitly, as opposed to defaults.
        self.asked: frozenset[str] = frozenset()
        self.rank: int | None = None
        self.raw: Path | None = None
        self._parents_raw: Path | None = None  # in a forked process
        self.is_off = False
        # True from the first backward pass or update until the recording ends.
        self.is_recording = False
        # The hooks of every imported framework, and those of the one that trains. A script may
        # import several frameworks, and load data with one that it does not train with.
        self.installed: list[Any] = []
        self.hooks: Any = None
        self._is_framework_known = False
        self.frameworks: dict[str, str] = {}
        self.devices: list[str] = ["cpu"]
        # Called at each host sample: hooks that buffer marks write them, so that they survive if
        # training hangs and is killed.
        self.at_looks: list[Callable[[], None]] = []
        # Set by a framework: whether a thread of its own, by native id, builds batches.
        self.makes_batches: Callable[[int], bool] = lambda thread: False
        # Called in this order when recording ends: windows are written, hooks removed.
        self.on_close: list[Callable[[], None]] = []
        self._said: set[str] = set()
        self.unseen = Unseen(self)
        self._is_released = self._is_closed = False
        self._lock = threading.RLock()
        self._sampler: Sampler | None = None
        self._stacks: StackSampler | None = None
        self._hardware: hardware_counters.Counters | None = None
        self._watched = 0
        # The script may change its working directory before folders are needed.
        self.home = Path.cwd()
        # The channel for windows on demand, and the watch for slow steps.
        self.channel: Any = None
        self._fresh_journal()

    def _fresh_journal(self) -> None:
        self.journal = Journal()
        self.journal.on_disk_error = self._disk_refused
        self.mark = self.journal.mark
        self.places = Places(self.journal.fact)
        self.metrics = MetricLog(self.warn)

    @property
    def run(self) -> Path:
        if self._find is not None:
            with self._lock:
                find, self._find = self._find, None
                if find is not None:
                    self._run = find()
        return self._run

    def add_hooks(self, hooks: Any) -> None:
        self.installed.append(hooks)
        self.hooks = self.hooks or hooks
        self.on_close.extend((hooks.windows.close, hooks.uninstall))

    def begin_training(self, hooks: Any = None) -> None:
        """This process trains with the framework of these hooks: claim its rank and start to write.
        Idempotent.
        """
        if hooks is not None and not self._is_framework_known and not self.is_off:
            self._train_with(hooks)
        if self.rank is not None or self.is_off:
            return
        with self._lock:
            if self.rank is not None or self.is_off:
                return
            said = ranks.of_this_process()
            try:
                rank, folder = ranks.claim(self.run, said)
                self._open(folder)
                self.rank = rank
            except OSError as error:
                self.give_up(
                    notices.notice("cannot-record", path=self.run, reason=error.strerror or error)
                )
                return
            if self._watched != threading.get_ident():
                self._stop_watching()
            self._introduce(said)
            if said.rank is not None and said.rank != self.rank:
                self.problem(
                    "rank",
                    f"this process is rank {said.rank}, which another process of the run had "
                    f"already taken; it is recorded as rank {self.rank}",
                )
            for note in (*self.notes, *checks.warnings(self)):
                self.warn("options", note)
            self.unseen.report()
            self._start_sampler()
            self._open_channel(said.world_size)
            self.is_recording = not self.is_off

    def likely_rank(self) -> int:
        """The expected rank before training begins, as far as it is known."""
        return self.rank if self.rank is not None else ranks.of_this_process().rank or 0

    def _train_with(self, hooks: Any) -> None:
        self.hooks, self._is_framework_known = hooks, True
        for other in self.installed:
            if other is not hooks:
                other.windows.retire()

    def _open(self, folder: Path) -> None:
        raw = folder / "raw"
        try:
            raw.mkdir()
            self.journal.open(raw)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)  # a rank that recorded nothing is useless
            raise
        self.raw = raw
        if self.metrics.is_open:  # of the process that this one was forked from
            self.metrics.close()
            self.metrics = MetricLog(self.warn)
        self.metrics.open(raw)

    def _introduce(self, said: "ranks.Place") -> None:
        self.journal.fact(
            type="process",
            pid=os.getpid(),
            start_ticks=ranks.start_ticks(os.getpid()),
            host=platform.node(),
            rank=self.rank,
            said_rank=said.rank,
            world_size=said.world_size,
            local_rank=said.local_rank,
            argv=list(getattr(sys, "argv", [])),
            directory=full_path("."),
            python=platform.python_version(),
            frameworks=self.frameworks,
            devices=self.devices,
            main_thread=threading.main_thread().native_id,
            unix_ns=time.time_ns(),
            monotonic_ns=time.monotonic_ns(),
            fp_point=os.environ.get("FP_POINT"),
            bp_point=os.environ.get("BP_POINT"),
        )
        self.journal.fact(type="options", options=self.options.to_json())

    def say(self, text: str) -> None:
        """One line on stderr; each text is printed once."""
        if text in self._said:
            return
        self._said.add(text)
        notices.write(text)

    def problem(self, source: str, what: str, count: int = 1) -> None:
        self.journal.fact(type="problem", source=source, what=what, count=count)

    def warn(self, source: str, what: str) -> None:
        """Recording goes on, but something in it will be missing or wrong."""
        self.problem(source, what)
        self.say(what)

    def give_up(self, why: str, source: str = "recorder") -> None:
        """Stop recording and let training go on."""
        if self.is_off:
            return
        self._turn_off()
        self.problem(source, why)
        self.say(why)
        self.stand_down()
        if self.rank is None:
            ranks.leave_word(self.run, why)

    def stand_down(self) -> None:
        """Remove the hooks; calls in progress may still reach one, but leave no mark."""
        self._turn_off()
        self._release()
        self.journal.hush()

    def guarded(self, function: Function) -> Function:
        """A hook that never raises: any error in it ends the recording and nothing else.

        The hooks that every step calls catch their errors themselves, to save this frame.
        """

        def hook(*args: Any) -> Any:
            if self.is_off:
                return self._release()
            try:
                return function(*args)
            except Exception as error:
                self.broke(function.__name__, error)
                return None

        return hook  # type: ignore[return-value]

    def broke(self, where: str, error: Exception) -> None:
        if self.is_off:
            return
        self.give_up(
            notices.notice("own-fault", where=where, reason=fault_text(error)),
            source=where,
        )

    def close(self, state: str) -> None:
        """Write what is buffered, record how the process ended, and remove the hooks."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._release()
            self._turn_off()
            self.metrics.close()
            if self.rank is not None:
                self._say_end(state)
            self.journal.close()

    def watch_config(self, folder: str) -> None:
        """Also watch the profiler_config.json of this folder for requested windows."""
        self.options = dataclasses.replace(self.options, dynamic=folder)
        if self.channel is not None:
            self.channel.use_config(Path(folder))

    def _open_channel(self, world_size: int | None) -> None:
        from strobe.collect.on_demand import channel

        try:
            self.channel = channel.open_channel(self, world_size)
        except Exception as error:
            self.problem("dynamic", f"windows cannot be asked for: {error}")

    def pause(self) -> None:
        """Recording stops but may resume; until then the run counts as finished."""
        self._stop_sampler()
        if self.channel is not None:
            self.channel.pause(True)
        if self.rank is not None:
            self._say_end("finished")

    def resume(self) -> None:
        if self.rank is not None and not self.is_off:
            self._start_sampler()
            if self.channel is not None:
                self.channel.pause(False)

    def _say_end(self, state: str) -> None:
        self.journal.fact(
            type="end", state=state, unix_ns=time.time_ns(), monotonic_ns=time.monotonic_ns()
        )

    def _start_sampler(self) -> None:
        options = self.options
        training = self._watched or threading.get_ident()
        self._sampler = Sampler(
            self.journal, options.sample_ms / 1000, self.guarded, options.profile_framework,
            self._hardware_counters(), self.warn, self.at_looks,
            CoreUsers(self.journal, training, lambda thread: self.makes_batches(thread)),
        )  # fmt: skip
        self._sampler.start()
        self.watch()

    def _hardware_counters(self) -> hardware_counters.Counters | None:
        wanted = hardware_counters.groups(self.options)
        if not wanted or self._hardware is not None:
            return self._hardware
        try:
            counters = self._hardware = hardware_counters.Counters(wanted)
        except OSError as error:  # /proc is not available
            self.problem("hardware", f"hardware counters are not recorded: {error}")
            return None
        if counters.refused:
            self.warn("hardware", counters.refused)
        return counters

    def watch(self) -> None:
        """Sample the stack of this thread: it trains, or is about to.

        What it does before its first backward pass (building an index, compiling a model) may be
        the longest part.
        """
        if self._stacks is not None or self.is_off or not self.options.sample_stacks:
            return
        self._watched = self._watched or threading.get_ident()
        self._stacks = StackSampler(self.journal, self.guarded, self.is_in_window, self._watched)
        self._stacks.start()

    def _stop_watching(self) -> None:
        if self._stacks is not None:
            self._stacks.stop()
        self._stacks, self._watched = None, threading.get_ident()

    def is_in_window(self) -> bool:
        return self.hooks is not None and self.hooks.windows.is_recording

    def after_fork_in_child(self) -> None:
        """The child is another process: it has recorded nothing yet and owns no file."""
        self._lock = threading.RLock()
        if self._sampler is not None:
            self._sampler.forget_in_child()
        self._sampler = self._stacks = self._hardware = self.channel = None
        self._watched = 0
        self._parents_raw = self.raw or self._parents_raw
        self.rank = self.raw = None
        self.is_recording = False
        self._fresh_journal()
        if self._parents_raw is not None:
            # Unless it trains, what it logs belongs to the rank that it was forked from.
            self.metrics.open(self._parents_raw, OF_PROCESS.format(os.getpid()))
        for hooks in self.installed:
            hooks.after_fork_in_child()

    def _disk_refused(self, error: OSError) -> None:
        """Called with the journal's lock held, so a hook of the next step removes them all."""
        self._turn_off()
        why = notices.notice("disk-refused", path=self.run, reason=error.strerror or error)
        self.say(why)
        self.problem("journal", why)
        self._stop_sampler()

    def _turn_off(self) -> None:
        self.is_off, self.is_recording = True, False

    def _release(self) -> None:
        """Write the window that is still buffered and remove the hooks, once."""
        if self._is_released:
            return
        self._is_released = True
        self._stop_sampler()
        if self.channel is not None:
            self.channel.close()
        for step in list(self.on_close):
            try:
                step()
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                what = notices.notice("close-failed", reason=reason)
                self.problem("close", what)
                if not self.is_off:  # already giving up: the first reason is the one to report
                    self.say(what)

    def _stop_sampler(self) -> None:
        for sampler in (self._sampler, self._stacks):
            if sampler is not None:
                sampler.stop()
        self._stacks = None


# The recorder active in this process, if any.
current: Recorder | None = None


def end_state() -> str:
    """How this interpreter is ending, as far as it can know."""
    # SystemExit, and in a child of multiprocessing any exception, is still being handled.
    error = getattr(sys, "last_value", None) or sys.exc_info()[1]
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return "finished"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
