"""What every rank of a job is doing: one small file each, which is also its heartbeat."""

import contextlib
import os
import platform
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from strobe.collect.on_demand.files import read_object, replace
from strobe.collect.ranks import start_ticks

# Intervals at which a rank reports its step: shorter at the start, when its speed is not known yet.
# A rank on another machine that is silent for this long is considered dead: several times longer
# than a shared file system may serve an old version (3 s), and than a process may hold its GIL.
BEAT_S = 2.0
EARLY_BEAT_S, EARLY_BEATS = 0.5, 3
SILENCE_S = 15.0

_WHOLE_NUMBERS = (
    "rank", "pid", "step", "step_ns", "beat", "ready", "generation", "finished", "queued",
)  # fmt: skip


@dataclass
class RankStatus:
    rank: int
    pid: int = 0
    start_ticks: int | None = None
    host: str = ""
    world_size: int | None = None
    state: str = "training"  # waiting, recording, writing, training, paused, ended
    step: int = 0
    step_ns: int = 0  # recent duration of a step
    monotonic_ns: int = 0  # when the step was reported, on the clock of its machine
    beat: int = 0
    ready: int = 0  # the last entry of the log that it has taken up
    generation: int = 0  # of the window that it recorded last, or is waiting for
    finished: int = 0  # the last generation that it has finished
    window: tuple[int, int] | None = None  # steps of it: the first, and the one after the last
    reason: str = ""
    # Of the leader: what is wrong with profiler_config.json, if anything.
    config: str = ""
    # Of the leader: requested windows that are unfinished.
    queued: int = 0
    is_leader: bool = False

    @property
    def takes_part(self) -> bool:
        return self.state not in ("paused", "ended")


class Ranks:
    """The ranks of a job, read again when `look` is called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[int, RankStatus] = {}
        # By rank: its last heartbeat, and when it was first seen here.
        self._beats: dict[int, tuple[int, float]] = {}

    def look(self) -> None:
        """Raises OSError."""
        for path in self.folder.glob("rank_*.json"):
            found = read_object(path)
            status = None if found is None else from_json(found)
            if status is None:
                continue
            self.known[status.rank] = status
            if self._beats.get(status.rank, (-1, 0.0))[0] != status.beat:
                self._beats[status.rank] = status.beat, time.monotonic()

    def alive(self) -> list[RankStatus]:
        """Those that take part, in the order of their numbers."""
        return [self.known[rank] for rank in sorted(self.known) if self._is_alive(self.known[rank])]

    def _is_alive(self, status: RankStatus) -> bool:
        if not status.takes_part:
            return False
        gone = is_gone(status)
        seen = self._beats[status.rank][1]
        return not gone and time.monotonic() - seen < SILENCE_S

    def furthest_step(self, ahead_s: float = 0.0) -> int:
        """The step that the fastest rank is at, or will be at after this delay."""
        return max((_step_by_now(status, ahead_s) for status in self.alive()), default=1)


def publish(folder: Path, status: RankStatus) -> None:
    """Raises OSError."""
    replace(folder / f"rank_{status.rank}.json", vars(status), is_for_people=False)


def from_json(found: dict[str, Any]) -> RankStatus | None:
    values = {f.name: found[f.name] for f in fields(RankStatus) if f.name in found}
    with contextlib.suppress(TypeError, ValueError):
        if values.get("window"):
            first, end = values["window"]
            values["window"] = int(first), int(end)
        for name in _WHOLE_NUMBERS:
            values[name] = int(values.get(name, 0))
        return RankStatus(**values)
    return None


def is_gone(status: RankStatus) -> bool | None:
    """Whether its process has ended; None if it runs on another machine."""
    if status.host != platform.node():
        return None
    try:
        os.kill(status.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:
        stat = Path(f"/proc/{status.pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:  # not Linux: the signal has shown it
        return False
    is_other = status.start_ticks is not None and int(stat[19]) != status.start_ticks
    return is_other or stat[0] == b"Z"


def of_this_process(rank: int, world_size: int | None) -> RankStatus:
    pid = os.getpid()
    return RankStatus(rank, pid, start_ticks(pid), platform.node(), world_size)


def _step_by_now(status: RankStatus, ahead_s: float) -> int:
    if status.step_ns <= 0:
        return status.step
    later_ns = ahead_s * 1e9
    if status.host == platform.node():
        later_ns += max(0, time.monotonic_ns() - status.monotonic_ns)
    # A rank whose training has stalled is not as far as predicted; only one heartbeat counts.
    return status.step + int(min(later_ns, (ahead_s + BEAT_S) * 1e9) / status.step_ns)
