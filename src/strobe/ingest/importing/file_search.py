"""The content of a folder that a user names: files and Strobe runs, within limits.

A home directory or a temporary folder contains millions of files. The search stops at a number of
files, a depth and a time, and says so, so that nobody waits for minutes without feedback.
"""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from strobe.errors import UnreadableTrace, UsageError
from strobe.messages import message
from strobe.model.manifest import MANIFEST_FILE

MOST_FILES = 50_000
MOST_SECONDS = 20.0
DEEPEST = 24  # folders below the named one
MOST_LISTED = 12


@dataclass
class Search:
    """One search, over as many folders as needed."""

    most_files: int = field(default_factory=lambda: MOST_FILES)
    most_seconds: float = MOST_SECONDS
    progress: Callable[[int], None] = lambda files: None
    files: int = 0  # examined so far
    _began: float = field(default_factory=time.monotonic)

    def stops(self, files: int) -> str:
        """Why the search ends here, at this number of files; empty if it continues."""
        self.progress(files)
        if files > self.most_files:
            return message("errors/traces.too-many-files", count=f"{self.most_files:,}")
        if time.monotonic() - self._began > self.most_seconds:
            seconds = f"{self.most_seconds:.0f}"
            return message("errors/traces.search-too-long", seconds=seconds, count=f"{files:,}")
        return ""


def stopped(why: str, folder: Path, choices: str) -> UsageError:
    """The error for a search that stopped early; `choices` are the commands found so far."""
    hint = message("errors/traces.search-stopped-hint")
    if choices:
        hint = message("errors/traces.search-stopped-choices", commands=choices, otherwise=hint)
    return UsageError(why, where=str(folder), hint=hint)


@dataclass
class Contents:
    """The files of a folder that do not belong to a run, and the runs."""

    files: list[Path] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)


def contents(folder: Path, search: Search) -> Contents:
    """Everything below a folder, without hidden files, links and what is deeper than `DEEPEST`.

    Raises UsageError if there is more than the search may examine.
    """
    found = Contents()
    for place, folders, names in os.walk(folder):
        here = Path(place)
        shown = sorted(name for name in folders if not name.startswith("."))
        runs = [name for name in shown if (here / name / MANIFEST_FILE).exists()]
        found.runs += [here / name for name in runs]
        is_deep = len(here.parts) - len(folder.parts) >= DEEPEST
        folders[:] = [] if is_deep else [name for name in shown if name not in runs]
        found.files += [
            path for name in sorted(names)
            if not name.startswith(".") and not (path := here / name).is_symlink()
            and path.is_file()
        ]  # fmt: skip
        if why := search.stops(len(found.files)):
            raise stopped(why, folder, _commands(found.runs))
    return found


def refuse_folder_of_runs(folder: Path, runs: list[Path]) -> None:
    if runs:
        raise UnreadableTrace.of(
            "errors/traces.contains-one-run" if len(runs) == 1 else "errors/traces.contains-runs",
            where=str(folder),
            count=f"{len(runs):,}",
            hint=message("errors/traces.open-one", commands=_commands(runs)),
        )


def _commands(runs: list[Path]) -> str:
    return listing(([run], _about(run)) for run in runs)


def _about(run: Path) -> str:
    import datetime

    from strobe.errors import StrobeError
    from strobe.model.manifest import read_manifest

    try:
        manifest = read_manifest(run)
    except (OSError, StrobeError):
        return ""
    began = datetime.datetime.fromtimestamp(manifest.started_unix_ns / 1e9)
    return f"{manifest.state}, {began:%Y-%m-%d %H:%M}"


def listing(choices: Iterable[tuple[list[Path], str]]) -> str:
    """One command per line that opens these paths, with a description."""
    choices = list(choices)
    commands = [_command(paths) for paths, _ in choices[:MOST_LISTED]]
    width = max(map(len, commands), default=0)
    about = [text for _, text in choices]
    lines = [
        f"    {command:<{width}}  {text}".rstrip()
        for command, text in zip(commands, about, strict=False)
    ]
    if len(choices) > MOST_LISTED:
        lines.append(f"    and {len(choices) - MOST_LISTED:,} more")
    return "\n".join(lines)


def _command(paths: list[Path]) -> str:
    import shlex

    return f"strobe {'show' if len(paths) == 1 else 'import'} {shlex.join(map(str, paths))}"
