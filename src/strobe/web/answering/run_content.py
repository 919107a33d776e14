"""What a run contains, as a short text that changes when it does: answers are cached under it."""

import functools
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import strobe
from strobe.ingest.building.builder import describe
from strobe.ingest.recording import rank_state
from strobe.model.manifest import MANIFEST_FILE, Manifest
from strobe.store.run_folder import rank_dirs

_MOST_KNOWN = 10_000


@dataclass(frozen=True)
class _Known:
    files: tuple[Any, ...]
    manifest: Manifest
    state: str
    content: str


_known: dict[Path, _Known] = {}


def state_of(run: Path) -> tuple[Manifest, str]:
    """The manifest, and one word for it."""
    known = _read(run)
    return known.manifest, known.state


def content_of(run: Path) -> str:
    return _read(run).content


def _read(run: Path) -> _Known:
    """Read again only if a file has changed; a live run is read each time, because its marks are
    written through a mapping, which changes neither the size nor the time of a file."""
    files = tuple(sorted(_files(run)))
    known = _known.get(run)
    if known is None or known.files != files or known.state == "live":
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        manifest = describe(run)
        state = word_of(manifest)
        known = _known[run] = _Known(files, manifest, state, _content(run, files, manifest, state))
    return known


def word_of(manifest: Manifest) -> str:
    """One word for lists of runs: live, imported, or how it ended."""
    if manifest.state == "recording":
        return "live"
    is_imported = manifest.state == "finished" and manifest.recorded_by == "strobe import"
    return "imported" if is_imported else manifest.state


def _content(run: Path, files: tuple[Any, ...], manifest: Manifest, state: str) -> str:
    # Of run.json only the values count: opening a run writes the same values again.
    recorded = [file for file in files if file[0] != f"/{MANIFEST_FILE}"]
    digest = hashlib.sha256(f"{_code()} {recorded}".encode("utf-8", "surrogateescape"))
    if state == "live":
        signatures = [rank_state.signature(raw) for raw in rank_dirs(run).values()]
        digest.update(json.dumps(signatures).encode())
    digest.update(json.dumps(manifest.to_json(), default=str).encode())
    return digest.hexdigest()[:32]


def _files(run: Path) -> Iterator[tuple[str, int, int]]:
    """Name, size and time of change of all recorded files; tables only derive from them."""
    for folder in (run, *rank_dirs(run).values()):
        for entry in os.scandir(folder):
            # Names with a dot are files that are being written; tags do not come from training.
            is_recorded = not entry.name.startswith(".") and entry.name != "tags.json"
            if is_recorded and entry.is_file():
                status = entry.stat()
                yield entry.path.removeprefix(str(run)), status.st_size, status.st_mtime_ns


@functools.cache
def _code() -> str:
    """Changes with our code, so that a new version does not give old answers."""
    package = Path(strobe.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
