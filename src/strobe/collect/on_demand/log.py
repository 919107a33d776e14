"""What the ranks of a job agreed on: entries that are written once, and decided once.

An entry proposes something for a step: a window of full recording, or the early end of one. The
first process to write its decision decides it: "go" by the leader when every rank is ready, "no" by
a rank that reaches the step before that. As only one file of a name can be created, all ranks see
the same decision, whenever they read it.
"""

import contextlib
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from strobe.collect.on_demand.files import read_object, write_once

_ENTRY = re.compile(r"(\d+)\.entry\.json\Z")

# Older entries are useless: every rank has decided them, or is long gone.
_KEPT = 64


@dataclass(frozen=True)
class Entry:
    """Steps `start` to `stop` - 1 are to be recorded; or, if it `ends` a window, none from `start`
    on. A request keeps its generation over several entries if it takes several to agree.
    """

    number: int
    generation: int
    start: int
    stop: int
    ends: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    by: str = ""
    why: str = ""
    # The origin of the request, to identify it.
    key: str = ""
    asked_start: int | None = None


@dataclass(frozen=True)
class Decision:
    """If a rank says no, its step: the next proposal must be for a later one."""

    go: bool
    rank: int
    why: str = ""
    step: int = 0


class Log:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def newest(self) -> int:
        """The number of the last entry; 0 if there is none. Raises OSError."""
        names = (_ENTRY.match(path.name) for path in self.folder.iterdir())
        return max((int(name.group(1)) for name in names if name), default=0)

    def propose(self, entry: Entry) -> bool:
        """False if another entry with that number exists already. Raises OSError."""
        if entry.number > _KEPT:
            self._forget(entry.number - _KEPT)
        return write_once(self._path(entry.number, "entry"), asdict(entry))

    def entry(self, number: int) -> Entry | None:
        found = read_object(self._path(number, "entry"))
        return None if found is None else _made(Entry, found)

    def decide(self, number: int, decision: Decision) -> Decision:
        """The decision that is valid from now on: this one, or an earlier one. Raises OSError."""
        path = self._path(number, "decision")
        if write_once(path, asdict(decision)):
            return decision
        standing = self.decision(number)
        # Incomplete, on a file system without hard links: its writer is about to finish.
        for _ in range(100):
            if standing is not None:
                return standing
            standing = self.decision(number)
        raise OSError(f"the decision in {path} cannot be read")

    def decision(self, number: int) -> Decision | None:
        found = read_object(self._path(number, "decision"))
        return None if found is None else _made(Decision, found)

    def _path(self, number: int, what: str) -> Path:
        return self.folder / f"{number:06}.{what}.json"

    def _forget(self, number: int) -> None:
        for what in ("entry", "decision"):
            with contextlib.suppress(OSError):
                self._path(number, what).unlink()


def _made(cls: type[Any], found: dict[str, Any]) -> Any:
    """None if it is not an entry."""
    try:
        return cls(**{f.name: found[f.name] for f in fields(cls) if f.name in found})
    except TypeError:
        return None
