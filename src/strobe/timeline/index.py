"""The index of a run's timeline: where it lies, whether it is current, and how it is opened."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from strobe.ingest.building.table_state import find_tables, tables_home
from strobe.store import array_file
from strobe.store.run import TABLES_DIR, Run
from strobe.store.run_folder import CANNOT_WRITE, folder_in, refuse_removed
from strobe.store.user_cache import user_cache
from strobe.timeline.build import Progress, build
from strobe.timeline.rows import Array

# Raise it when what is stored, or how it is worked out, changes.
_VERSION = 8
# In a folder of its own: the files beside run.json are what was recorded.
INDEX_FILE = "timeline/index"


class Index(NamedTuple):
    """Events in order of (row, start), their levels, causes and effects, and curves."""

    about: dict[str, Any]
    arrays: dict[str, Array]

    @property
    def content(self) -> str:
        return str(self.about["content"])

    @property
    def origin_ns(self) -> int:
        return int(self.about["origin_ns"])

    @property
    def rows(self) -> int:
        return len(self.arrays["row_at"]) - 1

    @property
    def names(self) -> int:
        return len(self.arrays["name_kind"])

    def name(self, code: int) -> str:
        first, last = self.arrays["name_at"][code : code + 2]
        return bytes(self.arrays["name_text"][first:last]).decode("utf-8", "replace")

    def kind(self, code: int) -> str:
        return str(self.about["kinds"][self.arrays["name_kind"][code]])


def content_of(run_dir: Path) -> str:
    """A word that changes when the run's tables do."""
    files = sorted(tables_home(run_dir).glob(f"rank_*/{TABLES_DIR}/*.parquet"))
    seen = [(f.parent.parent.name, f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    return hashlib.sha256(repr((_VERSION, seen)).encode()).hexdigest()[:20]


def open_current(run_dir: Path) -> Index | None:
    """The index, if the run's tables are those of what was recorded and the index is of them."""
    return open_index(run_dir) if find_tables(run_dir).are_usable else None


def open_index(run_dir: Path) -> Index | None:
    """The index, if there is one of the run as it is now."""
    return open_named(run_dir, content_of(run_dir))


def open_named(run_dir: Path, content: str) -> Index | None:
    """The index of this content, though the run may have grown since."""
    return _first(run_dir, lambda about: bool(about.get("content") == content))


def open_last(run_dir: Path) -> Index | None:
    """The last index that was made of the run, however far it has grown since."""
    return _first(run_dir, lambda about: bool(about.get("version") == _VERSION))


def _first(run_dir: Path, is_wanted: Callable[[dict[str, Any]], bool]) -> Index | None:
    for path in _places(run_dir):
        about = array_file.read_about(path)
        if about is not None and is_wanted(about):
            return Index(*array_file.read(path))
    return None


def make_index(run: Run, progress: Progress = lambda what, share: None) -> Index:
    """Build it and keep it beside the run, or in the user's cache where that cannot be written.

    Raises NoSuchRun where the run was removed meanwhile.
    """
    about, arrays = build(run, progress)
    about |= {"content": content_of(run.path), "version": _VERSION}
    progress("writing the index", 0.95)
    refuse_removed(*run.rank_dirs)
    for path in _places(run.path):
        try:
            folder_in(path.parent.parent, path.parent.name)
            array_file.write(path, about, arrays)
        except OSError as error:
            if error.errno not in CANNOT_WRITE:
                raise
            continue
        return Index(*array_file.read(path))
    return Index(about, arrays)


def _places(run_dir: Path) -> tuple[Path, Path]:
    name = hashlib.sha256(os.fsencode(run_dir.resolve())).hexdigest()[:16]
    return run_dir / INDEX_FILE, user_cache() / f"{name}-timeline"
