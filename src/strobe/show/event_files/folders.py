"""Where the files of each rank go, and how they are named."""

import re
from pathlib import Path

from strobe.model.manifest import Manifest, Rank

_RANK_FOLDER = re.compile(r"rank_\d+")
_NOT_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)
_NS_PER_S = 10**9


def folder_of_rank(folder: Path, rank: int, ranks: list[int]) -> Path:
    """A folder of its own where there are several ranks."""
    if len(ranks) == 1:
        return folder
    home = folder / f"rank_{rank}"
    home.mkdir()
    return home


def is_folder_of_rank(path: Path) -> bool:
    return path.is_dir() and _RANK_FOLDER.fullmatch(path.name) is not None


def started_s(manifest: Manifest) -> int:
    return manifest.started_unix_ns // _NS_PER_S


def process_of(manifest: Manifest, rank: int) -> tuple[str, int]:
    """Host and number of the process, for the name of a file."""
    found = next((each for each in manifest.ranks if each.rank == rank), Rank(rank, 0, ""))
    host = _NOT_IN_NAMES.sub("_", found.host or manifest.host)
    return host or "host", found.pid
