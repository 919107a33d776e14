"""Requests for a window, and the inbox of a job where commands leave them."""

import contextlib
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.collect.notices import notice
from strobe.collect.on_demand.config import LEAVE, Wish, wish
from strobe.collect.on_demand.files import Unreadable, parse, read_text, replace
from strobe.errors import UsageError

# In a run: the folder in which ranks and commands communicate while it trains.
LIVE_DIR = "live"
INBOX_DIR, LOG_DIR, RANKS_DIR = "inbox", "log", "ranks"

DEFAULT_STEPS = 5

_NAME = re.compile(r"[\w.-]+\.json\Z")


@dataclass
class Request:
    """If `start` is None: as soon as all ranks can."""

    start: int | None
    count: int
    key: str
    by: str
    options: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    generation: int | None = None
    file: Path | None = None
    is_stop: bool = False
    kind: str = ""  # what the watch detected
    # How often the ranks failed to agree on a step so far.
    tries: int = 0


def of_wish(found: Wish, by: str) -> Request | None:
    """What the file requests, if it requests a window."""
    if found.start is None or found.stop is None:
        return None
    return Request(
        found.start, found.stop - found.start, found.key, by, found.options,
        generation=found.generation,
    )  # fmt: skip


def drop_into(inbox: Path, content: dict[str, Any]) -> str:
    """Leave a request for a job; returns its key. Raises OSError."""
    name = f"{time.time_ns()}-{os.getpid()}.json"
    replace(inbox / name, content)
    return name


def ask(
    *, steps: int = DEFAULT_STEPS, start: int | None = None, by: str, why: str = "",
    options: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The content of a request; raises UsageError if it cannot be followed."""
    content = {
        "start_step": start, "steps": steps, "by": by, "why": why, "options": options or {},
    }  # fmt: skip
    read(content, "")
    return content


def in_inbox(inbox: Path) -> tuple[list[Request], list[str]]:
    """Requests, oldest first, and errors of files that are not valid requests; those are
    removed.
    """
    requests, wrong = [], []
    try:
        paths = sorted(path for path in inbox.iterdir() if _NAME.match(path.name))
    except OSError as error:
        return [], [notice("requests-unreadable", reason=error.strerror)]
    for path in paths:
        if path.name.startswith("."):
            continue
        try:
            requests.append(read(parse(read_text(path)), path.name))
            requests[-1].file = path
        except (Unreadable, UsageError) as error:
            reason = error.what if isinstance(error, UsageError) else error.args[0]
            wrong.append(notice("request-ignored", folder=INBOX_DIR, name=path.name, reason=reason))
            remove(path)
    return requests, wrong


def read(content: dict[str, Any], key: str) -> Request:
    by, why = str(content.get("by", "")), str(content.get("why", ""))
    if content.get("stop") is True:
        return Request(None, 0, key, by, is_stop=True)
    count, start = content.get("steps", DEFAULT_STEPS), content.get("start_step")
    options = content.get("options") or {}
    if not isinstance(options, dict) or not isinstance(count, int) or count < 1:
        raise UsageError.of("errors/dynamic.no-steps", count=repr(count))
    first = 1 if start in (None, LEAVE) else start
    last = first + count - 1 if isinstance(first, int) else first
    found = wish({**options, "start_step": first, "stop_step": last})
    start = None if start in (None, LEAVE) else found.start
    kind = str(content.get("kind", ""))
    return Request(start, count, key, by, found.options, why, kind=kind)


def remove(path: Path | None) -> None:
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink()
