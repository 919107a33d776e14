"""What the commands that control a running job share."""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from strobe.cli.opening import whole_number
from strobe.cli.parser import with_default
from strobe.collect.on_demand.log import Entry, Log
from strobe.collect.on_demand.ranks import SILENCE_S, Ranks, RankStatus, is_gone
from strobe.collect.on_demand.requests import DEFAULT_STEPS, INBOX_DIR, LIVE_DIR, LOG_DIR, RANKS_DIR
from strobe.messages import Message, localized, message

# The content of a window, as flags: (flag, option, value).
_WINDOW_FLAGS = (
    ("--with-stack", "with_stack", True),
    ("--profile-memory", "profile_memory", True),
    ("--no-shapes", "record_shapes", False),
    ("--no-modules", "modules", False),
)

Report = Callable[[Message], None]

_TIMEOUT_S = 600
_POLL_S = 0.1


def add_window_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps", type=whole_number, metavar="N", default=DEFAULT_STEPS,
        help=with_default(localized("cli/live.steps"), DEFAULT_STEPS),
    )  # fmt: skip
    parser.add_argument(
        "--start-step", type=whole_number, metavar="N",
        help=localized("cli/live.start-step"),
    )  # fmt: skip
    for flag, option, value in _WINDOW_FLAGS:
        text = localized(f"cli/live.{flag[2:]}")
        parser.add_argument(flag, dest=option, action="store_const", const=value, help=text)
    parser.add_argument(
        "--timeout", type=whole_number, metavar="SECONDS", default=_TIMEOUT_S,
        help=with_default(localized("cli/live.timeout"), _TIMEOUT_S),
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help=localized("cli/parser.json"))


def window_options(args: argparse.Namespace) -> dict[str, Any]:
    found = {option: getattr(args, option) for _, option, _ in _WINDOW_FLAGS}
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
            beat = (self._ranks.folder / f"rank_{status.rank}.json").stat().st_mtime
        except OSError:
            return 0.0
        return max(0.0, time.time() - beat)

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

    def wait_for(self, key: str, timeout_s: float, report: Report) -> Entry | None:
        """Until the window of this request is recorded on every rank alive; None if it was not."""
        deadline = time.monotonic() + timeout_s
        reported = ""
        while time.monotonic() < deadline:
            entry = self.entry_of(key)
            alive = self.alive()
            if not alive:
                break
            if entry is not None and self.is_agreed(entry):
                if all(status.finished >= entry.generation for status in alive):
                    return entry
                values = {"steps": steps_text(entry.start, entry.stop),
                          "ranks": ranks_text(len(alive))}  # fmt: skip
                if str(values) != reported:
                    reported = str(values)
                    step = max(status.step for status in alive)
                    report(message("cli/live.progress", step=step, **values))
            time.sleep(_POLL_S)
        return None

    def reasons(self) -> list[str]:
        """The errors that the ranks report, each text once."""
        found = (text for status in self.ranks() for text in (status.config, status.reason))
        return list(dict.fromkeys(text for text in found if text))

    def rank_json(self, status: RankStatus) -> dict[str, Any]:
        silent = round(self.silence_s(status), 1)
        is_alive = status.takes_part and not self.is_dead(status)
        return {**asdict(status), "is_alive": is_alive, "heartbeat_age_s": silent}

    def state(self, status: RankStatus) -> Message:
        """What a rank is doing, in a few words."""
        if status.state == "ended":
            return message("cli/live.state-ended")
        if self.is_dead(status):
            return message("cli/live.state-gone", step=status.step)
        silent = self.silence_s(status)
        if silent > SILENCE_S:
            return message("cli/live.state-silent", seconds=f"{silent:.0f}")
        steps = steps_text(*status.window) if status.window else ""
        if status.state in ("waiting", "recording", "writing"):
            return message(f"cli/live.state-{status.state}", steps=steps,
                           generation=status.generation)  # fmt: skip
        state = message(f"cli/live.state-{'training' if status.takes_part else 'paused'}")
        if status.finished:
            return message("cli/live.state-done", state=state, steps=steps,
                           generation=status.finished)  # fmt: skip
        return state


def steps_text(start: int, stop: int) -> Message:
    if stop == start + 1:
        return message("cli/live.one-step", step=start)
    return message("cli/live.steps-from-to", first=start, last=stop - 1)


def ranks_text(count: int) -> Message:
    return message("cli/live.one-rank" if count == 1 else "cli/live.ranks", count=count)
