"""The runs below a base directory: their names, their states, and the way from a name to a folder.

A name is a path relative to the base directory. Nothing outside of it is ever opened: not by `..`,
not by an absolute name, not by a link.
"""

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from strobe.errors import NoSuchRun, StrobeError, UsageError
from strobe.store.run_folder import is_run
from strobe.web import tags
from strobe.web.answering.run_content import content_of, state_of

# A run lies at most so deep below the base directory: project/experiment/seed/run.
MOST_DEEP = 5
# Folders looked into at most: somebody may name their home.
MOST_FOLDERS = 20_000
_NO_RUNS_BELOW = {"node_modules", "__pycache__", "site-packages"}
# Names longer than the file system takes are refused before it is asked.
_MOST_NAME_BYTES = 4096


class BaseDir:
    """Everything that the server shows lies in here."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))

    def find(self, name: str) -> Path:
        """The folder of a run. Raises NoSuchRun, without a word on what is outside."""
        folder = self.path.joinpath(*_parts(name))
        try:
            is_there = Path(os.path.realpath(folder)) == folder and folder.is_dir()
        except OSError:  # a part that is longer than the file system takes
            is_there = False
        if not is_there or not is_run(folder):
            raise _no_such_run(name)
        _refuse_links_that_lead_out(folder, self.path)
        return folder

    def name_of(self, folder: Path) -> str:
        return folder.relative_to(self.path).as_posix()

    def runs(self) -> Iterator[Path]:
        """Every run, in no order. Links are not followed."""
        waiting, looked = [(self.path, 0)], 0
        while waiting and looked < MOST_FOLDERS:
            folder, depth = waiting.pop(0)
            looked += 1
            if depth and is_run(folder):
                yield folder
                continue
            if depth >= MOST_DEEP:
                continue
            try:
                inside = [e for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
            except OSError:
                continue
            waiting += [(Path(e.path), depth + 1) for e in inside if _may_hold_runs(e.name)]

    def refuse_links_that_lead_out(self, run: Path) -> None:
        """Raises NoSuchRun: a run from elsewhere must not make us read what is not its own."""
        _refuse_links_that_lead_out(run, self.path)

    def listing(self) -> list[dict[str, Any]]:
        """What is cheaply known of every run; a run that cannot be read is told of as broken."""
        entries = (self._entry(folder) for folder in self.runs())
        return [entry for entry in entries if entry is not None]

    def _entry(self, folder: Path) -> dict[str, Any] | None:
        """None of a run that was removed while we looked at it."""
        entry: dict[str, Any] = {
            "id": self.name_of(folder),
            "name": folder.name,
            "started_at": None,
            "state": "broken",
            "size_bytes": _size(folder),
            "ranks": 0,
            "frameworks": {},
            "tags": tags.read(folder),
            "problem": None,
            "content": "",
        }
        try:
            _refuse_links_that_lead_out(folder, self.path)
            manifest, state = state_of(folder)
            entry["content"] = content_of(folder)
        except (StrobeError, OSError) as error:
            entry["problem"] = str(getattr(error, "what", error))
            return entry if is_run(folder) else None
        return {
            **entry,
            "state": state,
            "started_at": _moment(manifest.started_unix_ns),
            "ended_at": _moment(manifest.ended_unix_ns),
            "command": manifest.command,
            "host": manifest.host,
            "ranks": len(manifest.ranks),
            "frameworks": {n: v for rank in manifest.ranks for n, v in rank.frameworks.items()},
        }


def _may_hold_runs(name: str) -> bool:
    return not name.startswith(".") and name not in _NO_RUNS_BELOW


def _parts(name: str) -> list[str]:
    too_long = len(name.encode("utf-8", "surrogatepass")) > _MOST_NAME_BYTES
    if not name or "\0" in name or "\\" in name or too_long:
        raise _no_such_run(name)
    parts = name.split("/")
    if any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        raise _no_such_run(name)
    if len(parts) > MOST_DEEP:
        raise _no_such_run(name)
    return parts


def one_name(name: Any) -> str:
    """The name of a folder, one part, for renaming. Raises UsageError."""
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise UsageError.of("errors/pages.bad-run-name")
    is_plain = name == name.strip() and name.isprintable() and "\\" not in name
    if not is_plain or "/" in name or name.startswith((".", "-")):
        raise UsageError.of("errors/pages.bad-run-name", where=repr(name))
    return name


def _no_such_run(name: str) -> NoSuchRun:
    shown = name if name.isprintable() and len(name) <= 200 else repr(name)[:200]
    return NoSuchRun.of("errors/run.missing-in-base-dir", where=shown)


def _refuse_links_that_lead_out(folder: Path, base: Path) -> None:
    """A run that was brought from elsewhere must not make us read what is not its own."""
    for link in _links(folder):
        target = Path(os.path.realpath(link))
        if not target.is_relative_to(base):
            raise NoSuchRun.of("errors/run.link-leads-out", where=link.relative_to(base).as_posix())


def _links(folder: Path) -> Iterator[Path]:
    """Links among what we read of a run: run.json, rank_N, and two levels below."""
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop()
        try:
            entries = list(os.scandir(here))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path)
            elif depth < 2 and entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), depth + 1))


def _size(folder: Path) -> int:
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
            except OSError:  # gone meanwhile: a run that is being built
                continue
    return total


def _moment(unix_ns: int | None) -> str | None:
    if not unix_ns:
        return None
    try:
        when = datetime.fromtimestamp(unix_ns / 1e9, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
