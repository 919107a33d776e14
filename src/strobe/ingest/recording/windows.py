"""The windows of a rank recorded by Strobe: which files they are, and which module reads each."""

import importlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import FlowParts, Flows, Memory, Samples

# The suffix of a window's file or folder, and the module whose `read` reads it.
_READERS = {
    ".trace.json": "strobe.ingest.formats.kineto.window",
    ".mindspore": "strobe.ingest.formats.mindspore.window",
    ".xplane.pb": "strobe.ingest.formats.xplane.window",
}

_FILE = re.compile(rf"window-(\d+)({'|'.join(map(re.escape, _READERS))})(\.gz)?\Z")


@dataclass
class Window:
    """In run time, with its texts in the rank's vocabulary."""

    number: int
    spans: Spans
    memory: list[Memory] = field(default_factory=list)
    counters: list[Samples] = field(default_factory=list)
    queues: list[Samples] = field(default_factory=list)
    flows: list[Flows | FlowParts] = field(default_factory=list)


def files(raw: Path) -> dict[int, Path]:
    """The trace of each window. If a file and its compressed copy exist, the plain one is complete:
    it is deleted only once the copy is complete.
    """
    found: dict[int, Path] = {}
    for path in sorted(raw.iterdir(), reverse=True):  # .json.gz, then .json over it
        number = number_of(path.name)
        if number is not None:
            found[number] = path
    return dict(sorted(found.items()))


def number_of(name: str) -> int | None:
    """The window that a file of this name contains."""
    match = _FILE.match(name)
    return int(match.group(1)) if match else None


def read(
    path: Path, number: int, started_unix_ns: int, words: Vocabulary, said: Problems,
    options: dict[str, Any],
) -> Window:  # fmt: skip
    match = _FILE.match(path.name)
    assert match is not None, path
    reader = importlib.import_module(_READERS[match.group(2)])
    window: Window = reader.read(path, number, started_unix_ns, words, said, options)
    return window
