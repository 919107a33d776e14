"""What comes before the tags of several runs, or folders of events, that one process writes."""

import os

# Folders of these names beside each other are parts of one run.
_PARTS = {"train", "training", "val", "validation", "eval", "evaluation", "test"}


class Prefixes:
    """The first run has none; of others it is their name, so that equal tags are not mixed."""

    def __init__(self) -> None:
        self._prefixes: dict[str, str] = {}
        self._first = ""

    def of_run(self, key: str, name: str | None = None) -> str:
        found = self._prefixes.get(key)
        if found is None:
            found = self._new(key, f"{name or key}/" if self._prefixes else "")
        return found

    def of_folder(self, folder: str) -> str:
        """The name of a folder is its path from where it parts from that of the first."""
        found = self._prefixes.get(folder)
        if found is None:
            path = os.path.abspath(folder)
            if not self._prefixes:
                self._first = path
            found = self._new(folder, self._path_prefix(path))
        return found

    def _path_prefix(self, path: str) -> str:
        name = os.path.basename(path)
        if path == self._first:
            return f"{name}/" if name in _PARTS else ""
        shared = os.path.commonpath([path, self._first])
        return f"{name if shared == path else os.path.relpath(path, shared)}/"

    def _new(self, key: str, prefix: str) -> str:
        name, number = prefix, 2
        while prefix and prefix in self._prefixes.values():
            prefix, number = f"{name[:-1]}#{number}/", number + 1
        self._prefixes[key] = prefix
        return prefix
