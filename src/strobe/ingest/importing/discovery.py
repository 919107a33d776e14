"""Which of the files and folders that a user names are traces, and in which format."""

import os
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from strobe.errors import UnreadableTrace, UsageError
from strobe.ingest.formats import compressed
from strobe.ingest.formats.registry import READERS
from strobe.ingest.importing import sources
from strobe.ingest.importing.file_search import Search, contents, refuse_folder_of_runs, stopped
from strobe.ingest.importing.sources import Found
from strobe.messages import message
from strobe.model.manifest import MANIFEST_FILE

_NAMED = 5  # number of ignored files that are listed by name; the others are counted
_NO_TRACE = "its format is not known, and it was left out"
_LINKS = "symbolic links in a folder are not followed"
_PACKED = (".gz", ".zst")
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.zst", ".tzst")
_TAR_MAGIC = slice(257, 262)


@dataclass
class Seen:
    """A trace, and the path by which the user named it or its folder."""

    reader: str
    found: Found
    root: Path
    archive: Path | None = None  # that it was unpacked from


@dataclass
class Discovered:
    traces: list[Seen] = field(default_factory=list)
    left_out: list[tuple[Path, str]] = field(default_factory=list)
    said: Counter[tuple[str, str]] = field(default_factory=Counter)  # source and what

    def problems(self) -> list[tuple[str, str, int]]:
        """At most a few by name."""
        found = [(*key, count) for key, count in self.said.items()]
        found += [(path.name, what, 1) for path, what in self.left_out[:_NAMED]]
        more = len(self.left_out) - _NAMED
        if more > 0:
            found.append(("import", "further files are no traces, or cannot be read", more))
        return found


def discover(paths: Iterable[Path], run: Path, search: Search | None = None) -> Discovered:
    """Every trace in these files and folders; archives are unpacked below the run.

    Raises UsageError if a folder contains traces of several jobs, or too many files.
    """
    from strobe.ingest.importing import jobs

    paths, search = list(paths), search or Search()
    found = Discovered()
    for number, named in enumerate(paths):
        path, run_name = sources.file_and_run(named)
        _refuse(path)
        before = [*found.traces]
        if path.is_dir():
            runs = contents(path, search).runs
            _look_into(path, path, run, found, search)
            if found.traces == before:
                refuse_folder_of_runs(path, runs)
        elif not _unpacked(path, run, found, f"{number}-{path.name}", search, only_by_name=False):
            _look_at(path, path.parent, found)
            if run_name:
                _choose(run_name, found, len(before), path)
            if len(found.traces) <= len(before) + 1:
                continue
        _drop_copies(found)
        jobs.refuse_strangers([seen for seen in found.traces if seen not in before], path)
    _drop_copies(found)
    if not found.traces:
        raise _nothing(paths, found)
    return found


def _refuse(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise UsageError.of(
            "errors/traces.no-file" if missing else "errors/traces.not-accessible",
            where=str(path),
            reason=error.strerror or error,
        ) from error
    if stat.S_ISDIR(mode):
        if (path / MANIFEST_FILE).exists():
            raise UsageError.of("errors/traces.is-run", where=str(path), path=path)
        if not os.access(path, os.R_OK | os.X_OK):
            raise UsageError.of("errors/traces.folder-not-readable", where=str(path))
    elif not stat.S_ISREG(mode):
        raise UsageError.of(
            "errors/traces.not-a-file", where=str(path), kind=compressed.kind_of_file(path)
        )


def _look_into(folder: Path, root: Path, run: Path, found: Discovered, search: Search) -> None:
    from strobe.ingest.importing import jobs

    taken: set[Path] = set()
    for reader in READERS:
        for claimed in reader.claim(folder):
            if claimed.run or not taken & {*claimed.paths}:
                found.traces.append(Seen(reader.NAME, claimed, root))
                taken |= {*claimed.paths, *claimed.ignored}
    for file in sources.files_below(folder):
        if file in taken:
            continue
        search.files += 1
        if why := search.stops(search.files):
            raise stopped(why, root, jobs.commands(jobs.jobs_of(found.traces)))
        name = f"{len(taken)}-{file.name}"
        is_ours = run in file.parents  # an archive inside an archive is not unpacked
        if is_ours or not _unpacked(file, run, found, name, search, only_by_name=True):
            _look_at(file, root, found)
        taken.add(file)
    _count_links(folder, found)


def _look_at(file: Path, root: Path, found: Discovered) -> None:
    try:
        if not file.stat().st_size:
            found.left_out.append((file, "the file is empty"))
            return
        peek = sources.peek(file)
        for reader in READERS.that_may_read(peek.head):
            seen = reader.recognise(peek)
            if seen is not None:
                found.traces += [Seen(reader.NAME, each, root) for each in seen.runs or (seen,)]
                return
    except UnreadableTrace as error:
        found.left_out.append((file, error.what))
    except OSError as error:
        found.left_out.append((file, f"the file cannot be read: {error.strerror or error}"))
    else:
        found.left_out.append((file, _NO_TRACE))


def _choose(run: str, found: Discovered, first: int, file: Path) -> None:
    """Leave of the runs of a file only the one that the user named, by its ID or its name."""
    from strobe.ingest.importing import jobs

    runs = found.traces[first:]
    chosen = [s for s in runs if s.found.run and run in (s.found.run, s.found.run_name)]
    if not chosen:
        choices = jobs.commands(jobs.jobs_of(runs)) if runs else ""
        raise UsageError(
            f"there is no run {run!r} in this file", where=str(file),
            hint=f"open one of these:\n{choices}" if choices else "",
        )  # fmt: skip
    found.traces[first:] = chosen


def _unpacked(
    file: Path, run: Path, found: Discovered, name: str, search: Search, *, only_by_name: bool
) -> bool:
    """Whether this is an archive, which is now unpacked and searched."""
    if only_by_name and not file.name.lower().endswith(_ARCHIVES):
        return False  # models and arrays are zip files too
    try:
        head = compressed.beginning(file, 512)
    except UnreadableTrace:
        return False
    if not head.startswith(compressed.ZIP) and head[_TAR_MAGIC] != b"ustar":
        return False
    from strobe.ingest.importing import archives

    folder = run / sources.UNPACKED / name
    for what, count in archives.unpack(file, folder).items():
        found.said[file.name, what] += count
    before = len(found.traces)
    _look_into(folder, folder, run, found, search)
    for seen in found.traces[before:]:
        seen.archive = file
    return True


def _count_links(folder: Path, found: Discovered) -> None:
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        count += sum(os.path.islink(os.path.join(place, name)) for name in (*folders, *names))
    if count:
        found.said[folder.name, _LINKS] += count


def _drop_copies(found: Discovered) -> None:
    """A file named twice, or next to its compressed copy, is one trace."""
    known: set[tuple[Path, str]] = set()
    kept = []
    resolved = [seen.found.paths[0].resolve() for seen in found.traces]
    all_paths = set(resolved)
    for seen, path in zip(found.traces, resolved, strict=True):
        if (path, seen.found.run) in known:
            continue
        if path.suffix in _PACKED and path.with_suffix("") in all_paths:
            found.said[path.name, "it is the compressed copy of a file beside it: left out"] += 1
            continue
        known.add((path, seen.found.run))
        kept.append(seen)
    found.traces = kept


def _nothing(paths: list[Path], found: Discovered) -> UnreadableTrace:
    names = ", ".join(reader.NAME for reader in READERS)
    hint = message("errors/traces.known-formats", known=names)
    strangers = found.left_out
    if len(strangers) == 1 and not paths[0].is_dir():
        path, what = strangers[0]
        if what == _NO_TRACE:
            return UnreadableTrace.of("errors/traces.unknown-format", where=str(path), hint=hint)
        return UnreadableTrace(what.replace("the file", "this file", 1), where=str(path))
    what = message("errors/traces.none-found", count=f"{len(strangers):,}")
    if strangers and all(what != _NO_TRACE for _, what in strangers):
        (path, reason), count = strangers[0], f"{len(strangers):,}"
        what = message("errors/traces.none-readable", count=count, name=path.name, reason=reason)
    links = sum(count for (_, said), count in found.said.items() if said == _LINKS)
    if links:
        hint = message("errors/traces.links-skipped", count=links, path=paths[0])
    return UnreadableTrace(what, where=str(paths[0]), hint=hint)
