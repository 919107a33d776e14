"""The channel of a recorded process, through which a window can be requested while training runs.

It is the folder `live/` of the run: `ranks/` says what every rank is doing, `log/` what they agreed
on, and `inbox/` takes requests. A background thread maintains it; the training thread only notices
a window that is due.
"""

import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strobe.collect import analysis
from strobe.collect.notices import notice
from strobe.collect.on_demand import config as dynamic_config
from strobe.collect.on_demand import folder_events, ranks
from strobe.collect.on_demand.files import replace
from strobe.collect.on_demand.folder_events import News
from strobe.collect.on_demand.follower import Follower
from strobe.collect.on_demand.leader import START_PATIENCE_S, Leader
from strobe.collect.on_demand.log import Log
from strobe.collect.on_demand.ranks import BEAT_S, EARLY_BEAT_S, EARLY_BEATS, Ranks
from strobe.collect.on_demand.request_queue import Intake
from strobe.collect.on_demand.requests import (
    INBOX_DIR,
    LIVE_DIR,
    LOG_DIR,
    RANKS_DIR,
    Request,
    drop_into,
)
from strobe.collect.slowdown.windows import Allowance, Watch

if TYPE_CHECKING:
    from strobe.collect.recorder import Recorder

# In the folder of profiler_config.json: which run is using it.
JOB_FILE = "job.json"

# However fast files change, they are checked no more often than this.
_SHORTEST_S = 0.01
# Without notifications from the kernel (or for another machine), changes are seen this late.
_POLL_S, _BUSY_POLL_S = 0.25, 0.02

# While training runs, the tables of a run are not built more often than this.
_ANALYSES_APART_S = 10.0

# If a folder cannot be used for at most this long, it is just being removed.
_TROUBLE_S = 2.0
# If the file is invalid for at most this long, it was being edited.
_DOUBT_S = 0.3

# Maximum number of different errors in the file to print on stderr; all of them are in the status.
_MOST_REPORTS = 3


class Channel:
    def __init__(
        self, recorder: "Recorder", world_size: int | None, config_dir: Path | None = None,
        allow: Callable[[Request], str] = lambda request: "",
    ) -> None:  # fmt: skip
        assert recorder.rank is not None
        self._recorder = recorder
        self._rank = recorder.rank
        self._live = recorder.run / LIVE_DIR
        self._log = Log(self._live / LOG_DIR)
        self._ranks = Ranks(self._live / RANKS_DIR)
        self._status = ranks.of_this_process(self._rank, world_size)
        self._published: dict[str, Any] = {}
        self._config_dir, self._is_config_new = config_dir, False
        inbox = self._live / INBOX_DIR
        self._intake = Intake(inbox, allow)
        self._leader = Leader(self._log, self._ranks, inbox, self._intake)
        self._is_leader = self._are_ranks_watched = False
        self._follower = Follower(recorder, self._log, self._status, self._report)
        self._beaten_at = 0.0
        self._began = time.monotonic()
        self._speed_from = 0, 0
        self._analysed_at = -_ANALYSES_APART_S
        self._reported: list[str] = []
        self._doubt = "", 0.0
        self._asked_for: list[dict[str, Any]] = []
        self._is_paused = False
        self._trouble_began: float | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="strobe-live", daemon=True)
        # Called every second or two on this thread: the watch for slow steps.
        self.on_beat: Callable[[], None] | None = None

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Signs off to the other ranks; waits only a moment for the thread."""
        self._stopped.set()
        self._news_or_none_wake()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=0.5)

    def pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._news_or_none_wake()

    def use_config(self, folder: Path) -> None:
        """Watch the file of this folder from now on; callable from any thread."""
        self._config_dir, self._is_config_new = folder, True
        self._news_or_none_wake()

    def ask(self, content: dict[str, Any]) -> None:
        """A request of this process itself; callable from any thread."""
        self._asked_for.append(content)
        self._news_or_none_wake()

    _news: News | None = None

    def _news_or_none_wake(self) -> None:
        if self._news is not None:
            self._news.wake()

    # On the background thread

    def _work(self) -> None:
        """Errors of files are reported and retried; an error of ours ends only this channel."""
        try:
            self._news = News()
            self._open()
            while not self._stopped.is_set():
                began = time.monotonic()
                longest = self._tick_safely()
                is_told = self._news.are_told
                busy = _BUSY_POLL_S if self._is_busy() else _POLL_S
                self._news.wait(min(longest, self._beat_s if is_told else busy))
                spare = _SHORTEST_S - (time.monotonic() - began)
                if spare > 0:
                    time.sleep(spare)
            self._say_goodbye()
        except Exception as error:
            what = notice("channel-ended", reason=f"{type(error).__name__}: {error}")
            self._recorder.problem("dynamic", what)
            self._recorder.say(what)

    def _open(self) -> None:
        for name in (INBOX_DIR, LOG_DIR, RANKS_DIR):
            (self._live / name).mkdir(parents=True, exist_ok=True)
        self._watch(self._log.folder, folder_events.NEW_FILES)
        self._beat()

    def _watch(self, folder: Path, what: int) -> None:
        assert self._news is not None
        self._news.watch(folder, what)

    def _tick_safely(self) -> float:
        try:
            longest = self._tick()
        except OSError as error:
            what = notice("live-folder", folder=self._live, reason=error.strerror or error)
            self._status.reason = what
            if not self._recorder.run.is_dir():  # the folder was removed, which the journal reports
                self._stopped.set()
            elif error.errno != errno.ENOSPC and self._troubled_for_s() > _TROUBLE_S:
                self._report(what)  # a full disk is reported elsewhere
            return BEAT_S
        self._trouble_began = None
        return longest

    def _troubled_for_s(self) -> float:
        now = time.monotonic()
        if self._trouble_began is None:
            self._trouble_began = now
        return now - self._trouble_began

    def _tick(self) -> float:
        self._follow()
        if time.monotonic() - self._beaten_at >= self._beat_s:
            self._beat()
        elif self._is_leader and self._leader.is_busy:
            self._follower.tell_step()
        if self._is_config_new and self._is_leader:
            self._open_config()
        while self._asked_for:
            drop_into(self._live / INBOX_DIR, self._asked_for.pop(0))
        longest = BEAT_S
        if self._is_leader:
            longest = self._leader.tick(self._rank)
            config = self._intake.config
            self._status.config = config.reason if config is not None else ""
            self._status.queued = len(self._intake.waiting)
            self._watch_ranks(self._leader.is_busy)
            self._report_if_it_lasts(self._status.config)
            for note in config.notes if config is not None else ():
                self._report(notice("in-file", file=dynamic_config.CONFIG_FILE, note=note))
            self._analyse()
            # Entries that were just agreed on are taken up here at once.
            self._follow()
        self._publish()
        return longest

    def _is_busy(self) -> bool:
        return self._follower.is_busy or (self._is_leader and self._leader.is_busy)

    def _follow(self) -> None:
        for entry in self._follower.read(self._is_paused):
            self._leader.know(entry)
        self._follower.look(self._is_paused)

    # This rank

    @property
    def _beat_s(self) -> float:
        return EARLY_BEAT_S if self._status.beat < EARLY_BEATS else BEAT_S

    def _beat(self) -> None:
        self._learn_speed()
        self._follower.tell_step()
        self._status.beat += 1
        self._beaten_at = time.monotonic()
        self._lead_if_lowest()
        if self.on_beat is not None:
            self.on_beat()

    def _learn_speed(self) -> None:
        step, now = self._follower.step(), time.monotonic_ns()
        step_before, before = self._speed_from
        if before and step > step_before:
            self._status.step_ns = (now - before) // (step - step_before)
        self._speed_from = step, now

    def _publish(self) -> None:
        content = vars(self._status)
        if content != self._published:
            ranks.publish(self._ranks.folder, self._status)
            self._published = content.copy()

    def _say_goodbye(self) -> None:
        self._status.state = "ended"
        self._status.beat += 1
        try:
            self._publish()
        except OSError:  # the run's folder was removed
            return

    # Leading

    def _lead_if_lowest(self) -> None:
        is_lowest = not self._is_paused and not self._is_lower_alive()
        if is_lowest == self._is_leader:
            return
        self._is_leader = self._status.is_leader = is_lowest
        if is_lowest:
            self._ranks.look()
            self._watch(self._live / INBOX_DIR, folder_events.NEW_FILES)
            self._open_config()
        elif self._news is not None:
            self._intake.config = None
            self._watch_ranks(False)
            self._news.forget(self._live / INBOX_DIR)

    def _watch_ranks(self, is_wanted: bool) -> None:
        """Only while an agreement is pending; otherwise every beat of a thousand ranks would wake
        us.
        """
        assert self._news is not None
        if is_wanted == self._are_ranks_watched:
            return
        self._are_ranks_watched = is_wanted
        if is_wanted:
            self._watch(self._ranks.folder, folder_events.RENAMED_INTO)
        else:
            self._news.forget(self._ranks.folder)

    def _is_lower_alive(self) -> bool:
        if self._rank == 0:
            return False
        self._ranks.look()
        is_early = time.monotonic() - self._began < START_PATIENCE_S
        if is_early and not all(lower in self._ranks.known for lower in range(self._rank)):
            return True  # it is being sent
        return any(status.rank < self._rank for status in self._ranks.alive())

    def _open_config(self) -> None:
        folder, self._is_config_new = self._config_dir, False
        if folder is None:
            return
        try:
            dynamic_config.write_first(folder, self._recorder.options)
            replace(folder / JOB_FILE, {"run": str(self._recorder.run.resolve())})
        except OSError as error:
            reason = error.strerror or error
            self._report(notice("dynamic-folder", folder=folder, reason=reason))
        self._intake.config = dynamic_config.ConfigFile(folder)
        self._watch(folder, folder_events.ANY_CHANGE)

    def _report_if_it_lasts(self, what: str) -> None:
        """Report only errors that last: a file may be in the middle of being written."""
        if what != self._doubt[0]:
            self._doubt = what, time.monotonic()
        elif time.monotonic() - self._doubt[1] > _DOUBT_S:
            self._report(what)

    def _report(self, what: str) -> None:
        if not what or what in self._reported:
            return
        self._reported.append(what)
        if len(self._reported) <= _MOST_REPORTS:
            self._recorder.say(notice("training-continues", what=what))
            self._recorder.problem("dynamic", what)

    def _analyse(self) -> None:
        is_soon = time.monotonic() - self._analysed_at < _ANALYSES_APART_S
        if not self._leader.to_analyse or is_soon:
            return
        self._leader.to_analyse.clear()
        self._analysed_at = time.monotonic()
        wrong = analysis.start(self._recorder.run, "async")
        if wrong:
            self._report(wrong)


def open_channel(recorder: "Recorder", world_size: int | None) -> Channel:
    """For a process that has just claimed its rank."""
    folder = recorder.options.dynamic
    channel = Channel(
        recorder, world_size, recorder.home / folder if folder else None, Allowance().why_not
    )
    if recorder.options.watch:
        channel.on_beat = Watch(recorder).look
    channel.start()
    return channel
