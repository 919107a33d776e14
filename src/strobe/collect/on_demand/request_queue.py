"""Requests that are pending: from the file, from commands, from the watch for slow steps."""

from collections.abc import Callable
from pathlib import Path

from strobe.collect.notices import notice
from strobe.collect.on_demand import requests
from strobe.collect.on_demand.config import CONFIG_FILE, ConfigFile
from strobe.collect.on_demand.requests import Request

# Maximum number of pending requests; further ones are refused.
_MOST_WAITING = 256


class Intake:
    def __init__(self, inbox: Path, allow: Callable[[Request], str]) -> None:
        """`allow` returns why a request is not followed now, or an empty text."""
        self._inbox, self._allow = inbox, allow
        self.config: ConfigFile | None = None
        self.reason = ""
        self.waiting: list[Request] = []
        # Keys of requests that were accepted, here or by an earlier leader.
        self.handled: set[str] = set()
        self.is_stopped = False
        self._file_key = ""

    def take_in(self, is_free: Callable[[Request], bool]) -> None:
        """Read the file and the inbox. A newer file may replace requests that `is_free`."""
        found = self.config.look() if self.config is not None else None
        if found is not None:
            self._replace_from_file(requests.of_wish(found, CONFIG_FILE), is_free)
        brought, wrong = requests.in_inbox(self._inbox)
        if wrong:
            self.reason = wrong[-1]
        for request in brought:
            if request.key not in self.handled:
                self._add(request)

    def drop(self, request: Request) -> None:
        """It is done, or no longer wanted."""
        requests.remove(request.file)
        if request in self.waiting:
            self.waiting.remove(request)

    def _replace_from_file(
        self, request: Request | None, is_free: Callable[[Request], bool]
    ) -> None:
        """A newer file replaces what an older one requested, unless that is due."""
        key = request.key if request is not None else None
        for older in [r for r in self.waiting if r.by == CONFIG_FILE and is_free(r)]:
            if older.key != key:
                self.waiting.remove(older)
                self.handled.discard(older.key)
        if request is None or any(request.key == waiting.key for waiting in self.waiting):
            return
        is_last, self._file_key = request.key == self._file_key, request.key
        if request.key not in self.handled:
            self._add(request)
        elif not is_last and self.config is not None:
            last = (request.start or 0) + request.count - 1
            self.config.reason = notice(
                "file-repeats", file=CONFIG_FILE, first=request.start, last=last
            )

    def _add(self, request: Request) -> None:
        self.handled.add(request.key)
        if request.is_stop:
            for waiting in list(self.waiting):
                self.drop(waiting)
            self.drop(request)
            self.is_stopped = True
            return
        why_not = self._allow(request)
        if not why_not and len(self.waiting) >= _MOST_WAITING:
            why_not = notice("too-many-requests", count=_MOST_WAITING)
        if why_not:
            self.reason = why_not
            self.drop(request)
            return
        self.waiting.append(request)
