"""Which event files are one run, and what comes before the tags of each.

A folder with event files is a run. A folder below it is a part of it if the same process wrote both
(`add_scalars`, `add_hparams`), or if names do not tell the process (tensorboardX). Folders `train`
and `validation` beside each other are parts of the folder above, as Keras writes them. The name of
a part comes before its tags. The values of `add_hparams` are those of the run itself.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from strobe.ingest.formats.event_files import records
from strobe.ingest.importing.sources import Found, files_below

_NAME = re.compile(r"tfevents\.(\d+)\.(.+)")
_PROCESS = re.compile(r"(.+\.\d+)\.\d+(?:\..*)?\Z")  # HOST.PID.NUMBER
_RANK = re.compile(r"rank[-_ ]?(\d{1,7})", re.IGNORECASE)
_OF_A_PROFILER = (".profile-empty",)
EMBEDDINGS = "projector_config.pbtxt"
_OF_EMBEDDINGS = ("tensors.tsv", "metadata.tsv", "sprite.png", EMBEDDINGS)
_TOGETHER = {"train", "validation"}
_HEAD_BYTES = 64 << 10
_HPARAMS = b"_hparams_/session_start_info"
_WALL_TIME_TAG = 0x09


def is_event_file(path: Path) -> bool:
    """By its first record; without the version of TensorBoard in it, by its name."""
    message = records.first_message(path)
    if not message or message[0] != _WALL_TIME_TAG:
        return False
    return b"brain.Event:" in message[:64] or (
        "tfevents" in path.name and b"MindSpore.Event:" not in message[:64]
    )


def runs(folder: Path) -> list[Found]:
    """The runs in a folder and below, each with all of its event files."""
    folders: dict[Path, list[Path]] = {}
    for path in files_below(folder):
        is_one = "tfevents" in path.name and not path.name.endswith(_OF_A_PROFILER)
        if is_one and is_event_file(path):
            folders.setdefault(path.parent, []).append(path)
    found: dict[Path, list[Path]] = {}
    for place, paths in sorted(folders.items()):
        found.setdefault(_home(place, folders, folder), []).extend(paths)
    return [_found(home, paths, folder) for home, paths in found.items()]


def _home(place: Path, folders: dict[Path, list[Path]], root: Path) -> Path:
    """The folder of the run that this one is a part of; itself if it is a run."""
    home, above = place, place
    while above != root:
        above = above.parent
        if above in folders and _are_one(folders[above], folders[place]):
            home = above
    beside = {path.name for path in folders if path.parent == place.parent}
    if home == place != root and place.name in beside >= _TOGETHER:
        return place.parent
    return home


def _are_one(above: list[Path], below: list[Path]) -> bool:
    writers = {_writer(path) for path in above}
    return None in writers or any(_writer(path) in (None, *writers) for path in below)


def _writer(path: Path) -> str | None:
    name = _NAME.search(path.name)
    process = _PROCESS.match(name[2]) if name else None
    return process[1] if process else None


def _found(home: Path, paths: list[Path], root: Path) -> Found:
    times = [at for at in map(records.began, paths) if at]
    below = home.relative_to(root).parts if home != root else (home.name,)
    ranks = [int(match[1]) for part in below if (match := _RANK.fullmatch(part))]
    return Found(
        tuple(paths), rank=ranks[-1] if ranks else 0, folder=home,
        first_unix_ns=min(times, default=None), ignored=_beside(home),
    )  # fmt: skip


def _beside(home: Path) -> tuple[Path, ...]:
    """Files that belong to a run, and are not needed to read it."""
    if not (home / EMBEDDINGS).exists():
        return ()
    return tuple(path for path in files_below(home) if path.name in _OF_EMBEDDINGS)


def with_prefixes(paths: Iterable[Path]) -> list[tuple[str, Path]]:
    """What comes before the tags of each file of a run, in the order in which they are read."""
    paths = sorted(paths, key=lambda path: (path.parent, path.name))
    home = Path(os.path.commonpath([path.parent for path in paths]))
    trials = {path.parent for path in paths if path.parent != home and _has_hparams(path)}
    return [
        ("" if path.parent == home or trials == {path.parent}
         else f"{path.parent.relative_to(home).as_posix()}/", path)
        for path in paths
    ]  # fmt: skip


def _has_hparams(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _HPARAMS in file.read(_HEAD_BYTES)
    except OSError:
        return False
