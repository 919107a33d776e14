"""What can be asked about a run over HTTP: a question, what its function gets, what it returns."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from strobe.web.served_run import ServedRun

# The worker processes that answer it, so that slow questions never wait in front of fast ones:
# - files: names, states and sizes of runs, renaming, deleting, the manuals of rules
# - quick: answered in milliseconds from files that are ready (parts of the timeline, live steps)
# - analysis: everything else; the tables of the run are built first
# - background: analyses for the list of runs, which nobody waits for
PoolName = Literal["files", "quick", "analysis", "background"]

# - no: sent as it is made, to the request that asked (files to save, fast questions)
# - briefly: requests for the same answer share the work, and get the answer when they ask again
# - disk: also stored for as long as the run stays the same
Keep = Literal["no", "briefly", "disk"]

JSON = "application/json"
CSV = "text/csv; charset=utf-8"
BYTES = "application/octet-stream"


@dataclass(frozen=True)
class Answer:
    """A body, whole or piece by piece. With a `file_name`, a browser saves it."""

    body: bytes | Iterator[bytes]
    media_type: str = JSON
    status: int = 200
    file_name: str = ""


@dataclass(frozen=True)
class Asked:
    """What the function of a question gets, in the worker.

    `path` is the run's folder, inside the base directory; `run` opens it, building its tables
    first where they are missing or old. `content` identifies what the run contains now: cache
    what you derive from a run under it. `words` are the parts of the address after the question's
    name. `report(what, done, of)` reports progress to the page that waits.
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
    function: str  # "module:name"; takes Asked, returns Answer. The server never imports it.
    pool: PoolName = "analysis"
    keep: Keep = "disk"
