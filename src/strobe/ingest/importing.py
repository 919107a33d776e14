"""Turn traces written elsewhere into a run: find them, give each its rank, build the tables."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from strobe.errors import UnreadableTrace, UsageError
from strobe.ingest import build, sources
from strobe.ingest.readers import READERS
from strobe.ingest.sources import Found, Source
from strobe.model.manifest import MANIFEST_FILE, Manifest, write_manifest

_HIDDEN = "."


def import_traces(paths: list[Path], run: Path) -> Manifest:
    """Make a run of all traces in files and folders; it appears whole or not at all."""
    found = discover(paths)
    ranks = _by_rank(found)
    starts = [f.first_unix_ns for _, f in found if f.first_unix_ns is not None]
    with _appearing(run) as folder:
        manifest = Manifest(
            started_unix_ns=min(starts, default=0), recorded_by="strobe import",
            command=["strobe", "import", *map(str, paths)], state="finished",
            directory=os.getcwd(), python=sys.version.split()[0],
        )  # fmt: skip
        write_manifest(folder, manifest)
        for rank, given in ranks.items():
            raw = folder / f"rank_{rank}" / build.RAW_DIR
            raw.mkdir(parents=True)
            sources.write(raw, given)
        return build.build(folder)


def discover(paths: Iterable[Path]) -> list[tuple[str, Found]]:
    """Every trace in these files and folders, with the reader that knows it."""
    found: list[tuple[str, Found]] = []
    strangers: list[Path] = []
    for path in paths:
        for file in _not_claimed(path, found):
            seen = _recognised(file)
            if seen is None:
                strangers.append(file)
            else:
                found.append(seen)
    if not found:
        raise _nothing(list(paths), strangers)
    return found


def _not_claimed(path: Path, found: list[tuple[str, Found]]) -> list[Path]:
    """The files of a path that no reader takes as part of a folder; adds what they take."""
    if not path.exists():
        raise UsageError("there is no such file or folder", where=str(path))
    if (path / MANIFEST_FILE).exists():
        raise UsageError(
            "this is a run already", where=str(path), hint=f"look at it: strobe show {path}"
        )
    if path.is_file():
        return [path]
    taken: set[Path] = set()
    for reader in READERS:
        for claimed in reader.claim(path):
            if not taken & {*claimed.paths}:
                found.append((reader.NAME, claimed))
                taken |= {*claimed.paths, *claimed.ignored}
    return [file for file in sources.files_below(path) if file not in taken]


def _recognised(file: Path) -> tuple[str, Found] | None:
    if file.name.startswith(_HIDDEN) or not file.stat().st_size:
        return None
    peek = sources.peek(file)
    for reader in READERS:
        seen = reader.recognise(peek)
        if seen is not None:
            return reader.NAME, seen
    return None


def _nothing(paths: list[Path], strangers: list[Path]) -> UnreadableTrace:
    known = ", ".join(reader.NAME for reader in READERS)
    if len(strangers) == 1 and not strangers[0].stat().st_size:
        return UnreadableTrace("this file is empty", where=str(strangers[0]))
    what = "this file is no trace that Strobe knows"
    if len(strangers) != 1 or paths[0].is_dir():
        what = f"no trace that Strobe knows among {len(strangers)} files"
    return UnreadableTrace(what, where=str(paths[0]), hint=f"it reads: {known}")


def _by_rank(found: list[tuple[str, Found]]) -> dict[int, list[Source]]:
    """Traces that do not say their rank get the free numbers, in order."""
    ranks: dict[int, list[Source]] = {}
    said = {f.rank for _, f in found if f.rank is not None}
    free = (number for number in range(len(found) + len(said)) if number not in said)
    for reader, trace in found:
        rank = next(free) if trace.rank is None else trace.rank
        given = ranks.setdefault(rank, [])
        given.append(Source(reader, [str(path.resolve()) for path in trace.paths], len(given)))
    return dict(sorted(ranks.items()))


@contextlib.contextmanager
def _appearing(run: Path) -> Iterator[Path]:
    """A folder beside the run that becomes it once it is complete."""
    run.parent.mkdir(parents=True, exist_ok=True)
    folder = run.parent / f".{run.name}.tmp-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
        os.replace(folder, run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
