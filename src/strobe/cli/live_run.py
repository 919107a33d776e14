"""What the commands share that speak with a training while it runs."""

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from strobe.cli.opening import whole_number
from strobe.collect.on_demand.log import Entry, Log
from strobe.collect.on_demand.ranks import SILENCE_S, Ranks, RankStatus, is_gone
from strobe.collect.on_demand.requests import DEFAULT_STEPS, INBOX_DIR, LIVE_DIR, LOG_DIR, RANKS_DIR

# What a window can hold, as flags: (flag, option, value, help).
_HOLDS = (
    ("--with-stack", "with_stack", True, "Python call stacks (costly)"),
    ("--profile-memory", "profile_memory", True, "every allocation"),
    ("--no-shapes", "record_shapes", False, "no shapes of operator inputs"),
    ("--no-modules", "modules", False, "no modules of the model"),
)

_LOOKS_APART_S = 0.1


def add_window_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps", type=whole_number, metavar="N", default=DEFAULT_STEPS,
        help=f"record so many steps (default {DEFAULT_STEPS})",
    )  # fmt: skip
    parser.add_argument(
        "--start-step", type=whole_number, metavar="N",
        help="the first of them; otherwise the next that all ranks can make",
    )  # fmt: skip
    for flag, option, value, text in _HOLDS:
        parser.add_argument(flag, dest=option, action="store_const", const=value, help=text)
    parser.add_argument(
        "--timeout", type=whole_number, metavar="SECONDS", default=600,
        help="wait no longer than this for the window (default 600)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="as JSON")


def window_options(args: argparse.Namespace) -> dict[str, Any]:
    found = {option: getattr(args, option) for _, option, _, _ in _HOLDS}
    return {option: value for option, value in found.items() if value is not None}


class Live:
    """The channel of a run, seen from outside."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.inbox = run / LIVE_DIR / INBOX_DIR
        self._log = Log(run / LIVE_DIR / LOG_DIR)
        self._ranks = Ranks(run / LIVE_DIR / RANKS_DIR)

    @property
    def is_there(self) -> bool:
        return self.inbox.is_dir()

    def ranks(self) -> list[RankStatus]:
        if self._ranks.folder.is_dir():
            self._ranks.look()
        return [self._ranks.known[rank] for rank in sorted(self._ranks.known)]

    def alive(self) -> list[RankStatus]:
        return [status for status in self.ranks() if status.takes_part and not self.is_dead(status)]

    def is_dead(self, status: RankStatus) -> bool:
        gone = is_gone(status)
        return self.silence_s(status) > SILENCE_S if gone is None else gone

    def silence_s(self, status: RankStatus) -> float:
        try:
            told = (self._ranks.folder / f"rank_{status.rank}.json").stat().st_mtime
        except OSError:
            return 0.0
        return max(0.0, time.time() - told)

    def next_step(self) -> int:
        """About the first that all ranks can make."""
        self.ranks()
        return self._ranks.furthest_step(ahead_s=0.5) + 3

    def entry_of(self, key: str) -> Entry | None:
        """The latest entry of the log that a request with this key led to."""
        if not self._log.folder.is_dir():
            return None
        newest = self._log.newest()
        for number in range(newest, max(0, newest - 64), -1):
            entry = self._log.entry(number)
            if entry is not None and entry.key == key:
                return entry
        return None

    def is_agreed(self, entry: Entry) -> bool:
        decision = self._log.decision(entry.number)
        return decision is not None and decision.go

    def wait_for(self, key: str, timeout_s: float, tell: Any) -> Entry | None:
        """Until the window of this request is recorded on every rank alive; None if it was not."""
        deadline = time.monotonic() + timeout_s
        told = ""
        while time.monotonic() < deadline:
            entry = self.entry_of(key)
            alive = self.alive()
            if not alive:
                break
            if entry is not None and self.is_agreed(entry):
                if all(status.finished >= entry.generation for status in alive):
                    return entry
                text = f"steps {steps_text(entry.start, entry.stop)} on {ranks_text(len(alive))}"
                if text != told:
                    told = text
                    tell(f"{text}; now at step {max(status.step for status in alive)}")
            time.sleep(_LOOKS_APART_S)
        return None

    def reasons(self) -> list[str]:
        """What the ranks say is wrong, each text once."""
        found = (text for status in self.ranks() for text in (status.config, status.reason))
        return list(dict.fromkeys(text for text in found if text))

    def rank_json(self, status: RankStatus) -> dict[str, Any]:
        silent = round(self.silence_s(status), 1)
        is_alive = status.takes_part and not self.is_dead(status)
        return {**asdict(status), "is_alive": is_alive, "told_s_ago": silent}

    def state(self, status: RankStatus) -> str:
        """What a rank is doing, in a few words."""
        if status.state == "ended":
            return "ended"
        if self.is_dead(status):
            return f"gone: its process ended at step {status.step} or later"
        silent = self.silence_s(status)
        if silent > SILENCE_S:
            return f"silent for {silent:.0f} s"
        window = steps_text(*status.window) if status.window else ""
        if status.state in ("waiting", "recording", "writing"):
            return f"{status.state}: generation {status.generation}, steps {window}"
        if status.finished:
            return f"{status.state}; generation {status.finished} done, steps {window}"
        return status.state


def steps_text(start: int, stop: int) -> str:
    return f"{start}" if stop == start + 1 else f"{start} to {stop - 1}"


def ranks_text(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"
