"""How a rank follows what the ranks agreed on: it takes up entries and reports its progress."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from strobe.collect.notices import notice
from strobe.collect.on_demand.log import Decision, Entry, Log
from strobe.collect.on_demand.ranks import RankStatus
from strobe.collect.on_demand.window import AskedWindow, Ending
from strobe.collect.slowdown.windows import WATCH
from strobe.errors import UsageError
from strobe.model import option_values

if TYPE_CHECKING:
    from strobe.collect.recorder import Recorder

# Options of what is recorded all the time, by hooks and samplers that are already running.
_OF_THE_RUN = ("profile_framework", "parallel_strategy", "hardware_metrics")


class Follower:
    def __init__(
        self, recorder: "Recorder", log: Log, status: RankStatus, report: Callable[[str], None]
    ) -> None:
        self._recorder, self._log, self._status, self._report = recorder, log, status, report
        # Unfinished windows, in the order of their steps.
        self._pending: list[tuple[Entry, AskedWindow]] = []
        # The last entry that was taken up; the others are told as soon as there is room for it.
        self._taken_up = 0
        self._read_up_to = 0

    @property
    def is_busy(self) -> bool:
        return bool(self._pending)

    @property
    def _hooks(self) -> Any:
        return self._recorder.hooks

    def step(self) -> int:
        return int(self._hooks.steps.now) if self._hooks is not None else 1

    def read(self, is_paused: bool) -> Iterator[Entry]:
        """New entries of the log, each taken up before it is yielded. Raises OSError."""
        newest = self._log.newest()
        for number in range(self._read_up_to + 1, newest + 1):
            entry = self._log.entry(number)
            if entry is None and number == newest:  # not complete yet
                return
            self._read_up_to = number
            if entry is not None:
                self._take_up(entry, is_paused)
                yield entry

    def tell_step(self) -> None:
        self._status.step, self._status.monotonic_ns = self.step(), time.monotonic_ns()

    def _take_up(self, entry: Entry, is_paused: bool) -> None:
        if self._hooks is None or is_paused:
            # Nobody should wait for a rank that takes no part.
            self._status.finished, self._taken_up = entry.generation, entry.number
            return
        if entry.ends:
            self._take_up_ending(entry)
            return
        if self._is_over_already(entry):
            return
        options = self._options(entry)
        window = AskedWindow(
            generation=entry.generation, start=entry.start, stop=entry.stop, options=options,
            given=entry.options, asked_start=entry.asked_start, by=entry.by, why=entry.why,
            settle=lambda: self._settle(entry, "before all were ready"),
        )  # fmt: skip
        self._pending.append((entry, window))
        self._hooks.windows.ask(window)
        self._decide_if_late(entry)
        self.tell_step()
        self._taken_up = entry.number

    def _is_over_already(self, entry: Entry) -> bool:
        """Its step has passed, or another window covers it: it is skipped on all ranks."""
        busy = any(
            window.verdict and not window.is_over and window.stop >= entry.start
            for _, window in self._pending
        )
        if self.step() < max(1, entry.start - 1) and not busy:
            return False
        why = "while another window was recorded" if busy else "too late"
        if self._settle(entry, why):
            self._status.reason = f"generation {entry.generation} was missed: it came {why}"
            self._recorder.problem("dynamic", self._status.reason)
            self._status.finished = max(self._status.finished, entry.generation)
            self._taken_up = entry.number
        return True

    def _take_up_ending(self, entry: Entry) -> None:
        for _, window in self._pending:
            if window.generation == entry.generation:
                ending = Ending(entry.start, lambda: self._settle(entry, "before all ranks knew"))
                window.endings = (*window.endings, ending)
                self._decide_if_late(entry)
        self._taken_up = self._status.ready = entry.number

    def _decide_if_late(self, entry: Entry) -> None:
        """Decide an entry that may be too late for this rank.

        Before the others treat this rank as ready: has its training continued meanwhile, and
        perhaps passed the step without seeing the entry? The boundary of the step after the current
        one may be in progress.
        """
        if self.step() >= entry.start - 1:
            self._settle(entry, "before it read the request")

    def _settle(self, entry: Entry, when: str) -> bool:
        """The decision of an entry; "no" if there is none yet. Also called by the
        training thread.
        """
        why = f"rank {self._status.rank} came to step {entry.start} {when}"
        try:
            decision = Decision(False, self._status.rank, why, self.step())
            return self._log.decide(entry.number, decision).go
        except OSError:
            return False

    def _options(self, entry: Entry) -> Any:
        try:
            given = option_values.read(entry.options)
            run = self._recorder.options
            fixed = [n for n in _OF_THE_RUN if n in given and given[n] != getattr(run, n)]
            if fixed and self._status.is_leader:
                self._report(notice("fixed-options", names=", ".join(fixed)))
            return dataclasses.replace(run, **given)
        except (UsageError, TypeError) as error:
            self._recorder.problem("dynamic", f"options of a window were ignored: {error}")
            return self._recorder.options

    def look(self, is_paused: bool) -> None:
        """Check what became of the unfinished windows. Raises OSError."""
        status = self._status
        for entry, window in list(self._pending):
            self._look_at(entry, window)
        if self._hooks is None or self._hooks.windows.are_written:
            status.ready = self._taken_up  # otherwise windows would pile up that are not written
        status.state = "paused" if is_paused else "training"
        if self._pending:
            entry, window = self._pending[0]
            status.state = "recording" if window.is_recording else "waiting"
            if window.is_over:
                status.state = "writing"
            status.generation, status.window = entry.generation, (window.start, window.stop)

    def _look_at(self, entry: Entry, window: AskedWindow) -> None:
        if window.verdict is None:
            decision = self._log.decision(entry.number)
            if decision is not None:
                window.verdict = decision.go
        if window.verdict is False:
            self._pending.remove((entry, window))
        elif window.is_over and self._hooks.windows.are_written:
            self._pending.remove((entry, window))
            self._finish(window)
        elif window.verdict and entry.by == WATCH and self._status.is_leader:
            self._recorder.say(notice("window-requested", reason=entry.why, first=entry.start,
                                      last=entry.stop - 1))  # fmt: skip

    def _finish(self, window: AskedWindow) -> None:
        self._status.finished = self._status.generation = window.generation
        self._status.reason = window.reason
        if window.began_at is not None and window.ended_at is not None:
            self._status.window = window.began_at, window.ended_at
