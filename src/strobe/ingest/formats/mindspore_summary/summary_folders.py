"""Which summary files are one run: those of a folder."""

import re
from pathlib import Path

from strobe.ingest.formats.event_files import records
from strobe.ingest.importing.sources import Found, files_below

_NAME = re.compile(r".+\.out\.events\.summary\.\d+\..*")
_RANK = re.compile(r"rank[-_ ]?(\d{1,7})", re.IGNORECASE)
_VERSION = b"MindSpore.Event:"
_LINEAGE_FIELDS = (0x10, 0x1A, 0x32, 0x3A, 0x4A, 0x52)  # step, version, and the four kinds


def is_summary(path: Path) -> bool:
    """By its first record, which tells a version; in a lineage file it does not."""
    message = records.first_message(path) or b""
    if message[:1] != b"\x09":
        return False
    is_lineage = path.name.endswith("_lineage") and message[9:10] in map(_byte, _LINEAGE_FIELDS)
    return is_lineage or _VERSION.lower() in message[:64].lower()


def _byte(value: int) -> bytes:
    return bytes([value])


def runs(folder: Path) -> list[Found]:
    folders: dict[Path, list[Path]] = {}
    for path in files_below(folder):
        if (_NAME.match(path.name) or path.name.endswith(("_MS", "_lineage"))) and is_summary(path):
            folders.setdefault(path.parent, []).append(path)
    return [
        _found(home, paths, folder, _of_the_collector(home))
        for home, paths in sorted(folders.items())
    ]


def alone(path: Path) -> Found | None:
    return _found(path.parent, [path], path.parent, ()) if is_summary(path) else None


def _found(home: Path, paths: list[Path], root: Path, beside: tuple[Path, ...]) -> Found:
    times = [at for at in map(records.began, paths) if at]
    parts = home.relative_to(root).parts or (home.name,)
    ranks = [int(match[1]) for part in parts if (match := _RANK.fullmatch(part))]
    return Found(
        tuple(paths), rank=ranks[-1] if ranks else 0, folder=home,
        first_unix_ns=min(times, default=None), ignored=beside,
    )  # fmt: skip


def _of_the_collector(home: Path) -> tuple[Path, ...]:
    """Checkpoints for landscapes, and exported tensors, which are read with the values."""
    return tuple(
        path
        for place in home.iterdir()
        if place.is_dir() and (place.name == "ckpt_dir" or place.name.startswith("export_"))
        for path in files_below(place)
    )
