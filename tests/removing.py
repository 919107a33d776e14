"""A run that is removed while somebody works on it, at the very moment that a test chooses."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TOUCHES = ("open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir")


def moved_away(run: Path) -> None:
    """All of it at once, as the server does when it deletes a run."""
    run.rename(run.with_name(f"{run.name}, removed"))


def what_was_recorded(run: Path) -> None:
    """As by `rm -r`, which cannot remove a folder that somebody writes into."""
    (run / "run.json").unlink(missing_ok=True)
    for raw in list(run.glob("rank_*/raw")):
        shutil.rmtree(raw)


class Removal:
    """Removes a run when it is touched for the n-th time, before that has any effect."""

    def __init__(
        self, run: Path, remove: Callable[[Path], None] = moved_away, *, at: int = 1,
        touches: tuple[str, ...] = TOUCHES,
    ) -> None:  # fmt: skip
        self._run, self._remove, self._left, self._touches = run, remove, at, touches
        self.touched = ""  # what was about to happen

    @property
    def is_done(self) -> bool:
        return self._left <= 0

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        paths = (a for a in arguments if isinstance(a, str | os.PathLike))
        if event not in self._touches or not any(map(self._is_inside, paths)):
            return
        self._left -= 1
        if self._left == 0:
            self.touched = f"{event} {arguments[0]}"
            _watching.remove(self)  # what follows is our own doing
            self._remove(self._run)

    def _is_inside(self, path: Any) -> bool:
        return Path(path).is_relative_to(self._run)

    def begin(self) -> None:
        _watching.append(self)

    def end(self) -> None:
        if self in _watching:
            _watching.remove(self)


@contextlib.contextmanager
def removing(run: Path, *args: Any, **more: Any) -> Iterator[Removal]:
    removal = Removal(run, *args, **more)
    removal.begin()
    try:
        yield removal
    finally:
        removal.end()


_watching: list[Removal] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    for removal in tuple(_watching):
        removal.note(event, arguments)


# There for as long as the process is: a hook cannot be taken off.
sys.addaudithook(_note)
