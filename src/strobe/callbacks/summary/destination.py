"""Where a summary goes: to the run that records this process, or to one of its own in a folder."""

import atexit
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from strobe.callbacks.summary.errors import WrongType, check_type
from strobe.collect import notices, recorder
from strobe.collect.metrics import api
from strobe.collect.metrics.log import Job, MetricLog
from strobe.collect.notices import notice
from strobe.collect.recorder import Recorder
from strobe.collect.start.new_run import new_recorder
from strobe.messages import message
from strobe.model.options import Options

# What a value takes in a file, at most, beside the bytes of its array.
_SCALAR_BYTES, _RECORD_BYTES, _HISTOGRAM_BYTES = 64, 1024, 8192

# Runs that hold summaries alone, by the folder that was asked for.
_runs: dict[Path, Recorder] = {}
# Folders that cannot be written: each is reported once.
_refused: set[Path] = set()


def checked_folder(name: str, given: Any) -> Path:
    """The folder that a script gives as `summary_dir` or `log_dir`. Raises WrongType."""
    check_type(name, given, (str, os.PathLike), "a-path")
    if not os.fspath(given):
        raise WrongType.of("errors/summary.wrong-type", name=name, value="''",
                           accepted=message("errors/summary.a-path"))  # fmt: skip
    return Path(os.path.abspath(given))


class Destination:
    """The metric log that values of one tool go to. Nothing here raises into training."""

    def __init__(self, tool: str, folder: Path | None, most_bytes: int | None = None) -> None:
        """`folder` is that of the run where nothing records; by default, that of `strobe.log`."""
        self.tool, self.folder = tool, folder
        self.source = tool
        self._most_bytes, self._bytes = most_bytes, 0
        self._is_full = False
        self._reported: set[str] = set()
        self._recorder: Recorder | None = None

    @property
    def run(self) -> Path | None:
        """The folder of the run, once there is one."""
        active = self._recorder
        return active.run if active is not None and active.rank is not None else None

    @property
    def files(self) -> Path | None:
        """Where files beside the run's own go: the folder that was asked for, or the run."""
        active = self.recorder()
        if active is None or active in _runs.values() or self.folder is None:
            return self.run
        return self.folder

    def recorder(self) -> Recorder | None:
        """Begins a run if nothing records; None if nothing can be written."""
        found = self._recorder
        if found is None or found.metrics.is_closed:
            self._recorder = found = self._found()
        if found is not None and found.rank is None and not found.is_off:
            self._recorder = found = self._found()  # its rank is claimed by the main process
        return found

    def _found(self) -> Recorder | None:
        if self.folder is None or is_recording():
            return api.home()
        return own_run(self.folder, self.tool)

    def log(self, size: int = 0) -> MetricLog | None:
        """Where to log something of this size; None if it is refused."""
        if self._is_full:
            return None
        found = self.recorder()
        if found is None:
            return None
        if self._most_bytes is not None and self._bytes + size > self._most_bytes:
            self._is_full = True
            self.warn(notice("summary-full", tool=self.tool, limit=self._most_bytes))
            return None
        self._bytes += size
        return found.metrics

    def scalars(self, values: Mapping[str, Any], step: int | None, ts_ns: int = 0) -> None:
        log = self.log(_SCALAR_BYTES * len(values))
        if log is not None:
            log.scalars(values, step, self.source, ts_ns)

    def text(self, tag: str, text: str, step: int | None, ts_ns: int = 0) -> None:
        log = self.log(_RECORD_BYTES + len(text))
        if log is not None:
            log.text(tag, text, step, self.source, ts_ns)

    def lineage(self, kind: str, values: Mapping[str, Any], step: int | None = None) -> None:
        log = self.log(_RECORD_BYTES * bool(values))
        if log is not None and values:
            log.lineage(kind, values, step, self.source)

    def hyperparameters(self, values: Mapping[str, Any]) -> None:
        log = self.log(_RECORD_BYTES * bool(values))
        if log is not None and values:
            log.hyperparameters(values, self.source)

    def record(self, kind: str, record: dict[str, Any], ts_ns: int = 0) -> None:
        log = self.log(_HISTOGRAM_BYTES)
        if log is not None:
            log.record(kind, {**record, "source": self.source}, 0, ts_ns)

    def submit(self, made: tuple[Job, int], ts_ns: int = 0) -> None:
        """A job of image_job, tensor_job or histogram_job."""
        job, size = made
        log = self.log(_RECORD_BYTES + size)
        if log is not None:
            log.submit(_at(job, ts_ns) if ts_ns else job, size)

    def histogram(self, job: Job, size: int, ts_ns: int = 0) -> None:
        """Takes `size` bytes in memory until it is counted, and little in the file."""
        log = self.log(_HISTOGRAM_BYTES)
        if log is not None:
            log.submit(_at(job, ts_ns) if ts_ns else job, size)

    def warn(self, text: str) -> None:
        """Each text once, on stderr and in the run."""
        if text in self._reported:
            return
        self._reported.add(text)
        found = self._recorder
        if found is not None:
            found.warn("summary", text)
        else:
            notices.write(text)

    def problem(self, text: str) -> None:
        """A row of `problems`, once, and nothing on stderr."""
        if text in self._reported:
            return
        self._reported.add(text)
        found = self.recorder()
        if found is not None:
            found.problem("summary", text)

    def guarded(self, what: str, action: Callable[[], Any]) -> Any:
        """No value that cannot be logged ends training; it is reported once."""
        try:
            return action()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self.warn(notice("summary-value", what=what, reason=reason))
            return None

    def flush(self) -> None:
        if self._recorder is not None:
            self._recorder.metrics.flush()

    def close(self) -> None:
        """Write what waits. A run of its own has ended then."""
        found, self._recorder = self._recorder, None
        if found is None:
            return
        found.metrics.flush()
        for folder, one in list(_runs.items()):
            if one is found:
                del _runs[folder]
                found.close("finished")


def _at(job: Job, ts_ns: int) -> Job:
    def dated() -> tuple[dict[str, Any], tuple[bytes, str] | None]:
        record, file = job()
        return {**record, "monotonic_ns": ts_ns}, file

    return dated


def monotonic_of(walltime: float | None) -> int:
    """On the clock of the log, a time in seconds since 1970; 0 for now."""
    if walltime is None:
        return 0
    return time.monotonic_ns() - (time.time_ns() - int(walltime * 1e9))


def is_recording() -> bool:
    active = recorder.current
    if active is None or active.metrics.is_closed:
        return False
    return active.rank is not None or not active.is_off


def own_run(folder: Path, tool: str) -> Recorder | None:
    """The run that this process writes to a folder; where another one is, beside it."""
    active = _runs.get(folder)
    if active is not None and not active.metrics.is_closed:
        return active
    if folder in _refused:
        return None
    made = new_recorder(folder, Options(light=True, sample_stacks=False), tool, tool)
    try:
        run = made.run
    except OSError as error:
        reason = error.strerror or error
        _refused.add(folder)
        notices.write(notice("summary-not-recorded", tool=tool, path=folder, reason=reason))
        return None
    made.begin_training()
    made.say(notice("summary-to", tool=tool, run=run))
    _runs[folder] = made
    return made


def _at_exit() -> None:
    for one in list(_runs.values()):
        one.close(recorder.end_state())


def _after_fork_in_child() -> None:
    """A child does not write to its parent's files."""
    for one in _runs.values():
        one.after_fork_in_child()
    _runs.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork_in_child)
