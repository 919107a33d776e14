"""What the ranks of a job agreed on: entries that are written once, and decided once.

An entry proposes something for a step: a window of full recording, or the early end of one. It is
decided by whoever first writes its decision: "go" by the leader when every rank is ready, "no" by a
rank that comes to the step before that. As only one file of a name can come to be, every rank that
looks at the decision, whenever it does, finds the same one.
"""

import contextlib
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from strobe.collect.on_demand.files import read_object, write_once

_ENTRY = re.compile(r"(\d+)\.entry\.json\Z")

# Older entries are of no use to anyone: every rank has decided them, or is long gone.
_KEPT = 64


@dataclass(frozen=True)
class Entry:
    """Steps `start` to `stop` - 1 are to be recorded; or, if it `ends` a window, none from `start`
    on. A request keeps its generation over several entries, when it takes several to agree."""

    number: int
    generation: int
    start: int
    stop: int
    ends: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    by: str = ""
    why: str = ""
    # What the request came from, to know it again.
    key: str = ""
    asked_start: int | None = None


@dataclass(frozen=True)
class Decision:
    """Of a rank that says no, its step: what is proposed next must be past it."""

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
        """False if another entry of that number is there already. Raises OSError."""
        if entry.number > _KEPT:
            self._forget(entry.number - _KEPT)
        return write_once(self._path(entry.number, "entry"), asdict(entry))

    def entry(self, number: int) -> Entry | None:
        found = read_object(self._path(number, "entry"))
        return None if found is None else _made(Entry, found)

    def decide(self, number: int, decision: Decision) -> Decision:
        """The decision that stands from now on: this one, or an earlier one. Raises OSError."""
        path = self._path(number, "decision")
        if write_once(path, asdict(decision)):
            return decision
        standing = self.decision(number)
        # Not whole yet, on a file system without links: whoever began it is about to finish.
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
    """None if it is not one of ours."""
    try:
        return cls(**{f.name: found[f.name] for f in fields(cls) if f.name in found})
    except TypeError:
        return None
