"""Tensors that a collector also exported as npy files: they have the type that was logged."""

import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from strobe.ingest.trace.codes import Array

_FOLDER = re.compile(r"export_\d+\Z")
_NAME = re.compile(r"(.*)_(\d{1,18})\.npy\Z", re.DOTALL)
_DAMAGE = (OSError, ValueError, EOFError, MemoryError, TypeError, SyntaxError, OverflowError)


def files(folder: Path) -> list[Path]:
    return [
        path
        for export in sorted(folder.iterdir() if folder.is_dir() else ())
        if _FOLDER.match(export.name) and not export.is_symlink()
        for path in sorted((export / "tensor").glob("*.npy"))
        if not path.is_symlink()
    ]


class Exported:
    """The exported tensors of a folder, by tag and step; each can be taken once."""

    def __init__(self, folder: Path) -> None:
        self.unreadable = 0
        self._files: dict[tuple[str, int], list[Path]] = {}
        for path in files(folder):
            if name := _NAME.match(path.name):
                self._files.setdefault((unquote(name[1]), int(name[2])), []).append(path)

    def take(self, tag: str, step: int) -> Array | None:
        """None if it was not exported, or cannot be read."""
        paths = self._files.get((tag, step))
        if not paths:
            return None
        array = _load(paths.pop(0))
        self.unreadable += array is None
        return array

    def rest(self) -> list[tuple[str, int, Array]]:
        """Those that no event has."""
        found = []
        for (tag, step), paths in self._files.items():
            for path in paths:
                array = _load(path)
                self.unreadable += array is None
                if array is not None:
                    found.append((tag, step, array))
        return found


def _load(path: Path) -> Array | None:
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return np.array(array) if array.dtype.kind in "biufc" else None
    except _DAMAGE:
        return None
