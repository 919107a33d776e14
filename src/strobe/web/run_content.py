"""What a run contains, as a short text that changes when it does: answers are kept under it."""

import functools
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import strobe
from strobe.ingest.building.builder import describe, rank_dirs
from strobe.ingest.recording import rank_state
from strobe.model.manifest import MANIFEST_FILE, Manifest

_SEEN_AT_MOST = 10_000


@dataclass(frozen=True)
class _Seen:
    files: tuple[Any, ...]
    manifest: Manifest
    state: str
    content: str


_seen: dict[Path, _Seen] = {}


def state_of(run: Path) -> tuple[Manifest, str]:
    """The manifest, and one word for the runs page: live, imported, or how it ended."""
    seen = _look(run)
    return seen.manifest, seen.state


def content_of(run: Path) -> str:
    return _look(run).content


def _look(run: Path) -> _Seen:
    """Told again only when a file of it changed; a live run is looked at each time."""
    files = _files(run)
    seen = _seen.get(run)
    if seen is not None and seen.files == files and seen.state != "live":
        return seen
    manifest = describe(run)
    state = manifest.state
    if state == "recording":
        state = "live"
    elif state == "finished" and manifest.recorded_by == "strobe import":
        state = "imported"
    # Of run.json what it says counts: opening a run writes it anew, with the same words.
    recorded = [file for file in files if file[0] != f"/{MANIFEST_FILE}"]
    told = hashlib.sha256(f"{_code()} {recorded}".encode("utf-8", "surrogateescape"))
    if state == "live":
        # Marks are written through a mapping, which changes neither size nor time of the file.
        signatures = [rank_state.signature(raw) for raw in rank_dirs(run).values()]
        told.update(json.dumps(signatures).encode())
    told.update(json.dumps(manifest.to_json(), default=str).encode())
    if len(_seen) >= _SEEN_AT_MOST:
        _seen.clear()
    _seen[run] = _Seen(files, manifest, state, told.hexdigest()[:32])
    return _seen[run]


def _files(run: Path) -> tuple[Any, ...]:
    """Name, size and time of change of all that was recorded. Tables are not: they follow."""
    found: list[tuple[str, int, int]] = []
    for folder in (run, *(raw for raw in rank_dirs(run).values())):
        for entry in os.scandir(folder):
            # What begins with a dot is being written; tags are not of the training.
            if entry.name.startswith(".") or entry.name == "tags.json":
                continue
            if entry.is_file():
                status = entry.stat()
                name = entry.path.removeprefix(str(run))
                found.append((name, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


@functools.cache
def _code() -> str:
    """Changes with our code: an analysis that learns is asked again."""
    package = Path(strobe.__file__).parent
    told = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        told.update(path.read_bytes())
    return told.hexdigest()
