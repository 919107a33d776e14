"""What can be asked of a run over HTTP: a question, what it is given, what it gives back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from strobe.web.served_run import ServedRun

# Which workers answer it, so that slow questions never stand before quick ones:
# - files: names, states and sizes of runs, renaming, deleting, the manuals of rules
# - quick: answers in milliseconds from what lies ready (parts of the timeline, live steps)
# - analysis: anything else
# - background: what nobody waits for (the column "top finding" of the runs page)
Lane = Literal["files", "quick", "analysis", "background"]

# How long an answer is kept for the next who asks the same of the same content of a run. An answer
# that is not kept at all ("no") is waited for by the one who asked; of others the page is told how
# far they have come, and fetches them when they are there, for which "briefly" is enough.
Keep = Literal["no", "briefly", "memory", "disk"]

JSON = "application/json"
CSV = "text/csv; charset=utf-8"
BYTES = "application/octet-stream"


@dataclass(frozen=True)
class Answer:
    """A body, whole or piece by piece. `file_name` makes a browser save it."""

    body: bytes | Iterator[bytes]
    media_type: str = JSON
    status: int = 200
    file_name: str = ""


@dataclass(frozen=True)
class Asked:
    """What a question is given, in the worker.

    `path` is the run's folder, inside the base directory; `run` opens it, building its tables
    first where they are missing or old. `content` names what the run contains: hold what you
    derive of a run under it. `words` are the parts of the address after the question's name.
    `report(what, done, of)` tells whoever waits how far the work has come.
    """

    path: Path
    content: str
    words: tuple[str, ...]
    params: Mapping[str, str]
    open: Callable[[], "ServedRun"]
    report: Callable[[str, int, int], None] = field(default=lambda what, done, of: None)
    # Of a question about two runs, the other one: see web/questions.py, compare.
    others: tuple["Asked", ...] = ()

    @property
    def run(self) -> "ServedRun":
        return self.open()


@dataclass(frozen=True)
class Question:
    """`GET /api/runs/<id>/<name>/<words...>?<params>` is answered by a function, in a worker."""

    name: str
    function: str  # "module:name"; it takes Asked and gives Answer. The server never imports it.
    lane: Lane = "analysis"
    keep: Keep = "disk"
