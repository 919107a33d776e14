"""Where an event comes from: the operator, the span and the line of the user's code around it."""

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass

from strobe.advise.training import Lines, Training

# "train.py(31): main", as call stacks are recorded.
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)\Z")
# Code that nobody's training script is: installed packages, and what Python makes up itself.
_INSTALLED = re.compile(
    r"(?:.*[/\\])?(?:site|dist)-packages[/\\]|.*[/\\]lib[/\\]python\d|<|torch[/\\]"
)

# A span with a number is one of many in a loop (ProfilerStep#7): no place.
_COUNTS = re.compile(r"#\d+\Z")

# Deeper than any stack that a training loop has.
_CLIMB_LIMIT = 256


@dataclass(frozen=True)
class Origin:
    """What is around an event, as far as it was recorded."""

    operator: str | None = None  # the outermost: aten::item, not what it calls
    span: str | None = None  # innermost one that the user or the framework named
    scope: str | None = None  # of the module
    line: Lines | None = None
    function: str | None = None

    @property
    def where(self) -> str | None:
        """The line, or else the module."""
        return str(self.line) if self.line else self.scope

    def __str__(self) -> str:
        names = [self.operator, self.where or self.span]
        return " in ".join(name for name in names if name) or "an unknown place"


def origins(training: Training, ids: Collection[int]) -> dict[int, Origin]:
    """Of each event."""
    if not ids:
        return {}
    listed = ", ".join(str(int(id)) for id in ids)
    # What is above an event lies around its start: looked up once, not anew for every level.
    rows = training.run.sql(f"""
        WITH RECURSIVE wanted AS MATERIALIZED (
            SELECT id, track_id, ts_ns FROM events WHERE id IN ({listed})
        ),
        around AS MATERIALIZED (
            SELECT DISTINCT e.id, e.kind, e.name, e.scope, e.parent_id
            FROM events e JOIN wanted w ON w.track_id = e.track_id
            WHERE e.ts_ns <= w.ts_ns AND w.ts_ns <= e.ts_ns + e.dur_ns
        ),
        climb(id, kind, name, scope, parent_id, depth) AS (
            SELECT id, kind, name, scope, parent_id, 0 FROM around SEMI JOIN wanted USING (id)
            UNION ALL
            SELECT c.id, e.kind, e.name, e.scope, e.parent_id, c.depth + 1
            FROM climb c JOIN around e ON e.id = c.parent_id WHERE c.depth < {_CLIMB_LIMIT}
        )
        SELECT id, kind, name, scope FROM climb ORDER BY id, depth
    """).fetchall()
    chains: dict[int, list[tuple[str, str, str | None]]] = {}
    for id, *link in rows:
        chains.setdefault(id, []).append((link[0], link[1], link[2]))
    return {id: _origin(chain) for id, chain in chains.items()}


def _origin(chain: list[tuple[str, str, str | None]]) -> Origin:
    """From the innermost outwards."""
    operators = [name for kind, name, _ in chain if kind == "op"]
    spans = [name for kind, name, _ in chain if kind == "annotation" and not _COUNTS.search(name)]
    scopes = [scope for _, _, scope in chain if scope]
    line, function = _own_line([name for kind, name, _ in chain if kind == "python"])
    return Origin(
        operator=operators[-1] if operators else None,
        span=spans[0] if spans else None,
        scope=scopes[0] if scopes else None,
        line=line,
        function=function,
    )


def _own_line(frames: list[str]) -> tuple[Lines | None, str | None]:
    """The innermost line of the user's own code; paths within a package are less likely that."""
    found = [match for match in map(_FRAME.match, frames) if match and not _is_foreign(match)]
    own = [match for match in found if _is_script(match["file"])] or found
    if not own:
        return None, None
    return Lines(own[0]["file"], int(own[0]["line"])), own[0]["function"]


def _is_foreign(frame: re.Match[str]) -> bool:
    file = frame["file"]
    top = re.split(r"[/\\]", file)[0].removesuffix(".py")
    return bool(_INSTALLED.match(file)) or top in sys.stdlib_module_names


def _is_script(file: str) -> bool:
    """Recorded paths are cut where Python looks for packages: a script's has no folder left."""
    return "/" not in file or file.startswith("/")
