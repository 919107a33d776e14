"""Formats that others write. To add one: write its module, add one line here.

A reader recognises its files by content, says which of them belong to which rank, and fills a
`Trace` from them. What it cannot read it counts in `trace.said` and goes on; it raises
UnreadableTrace only where nothing at all can be had.
"""

from pathlib import Path
from typing import Protocol

from strobe.ingest.ascend import reader as ascend
from strobe.ingest.chrome import reader as chrome
from strobe.ingest.chrome import strobe_timeline
from strobe.ingest.kineto import reader as kineto
from strobe.ingest.megengine import reader as megengine
from strobe.ingest.mindspore import reader as mindspore
from strobe.ingest.sources import Found, Peek, Source
from strobe.ingest.spans import Vocabulary
from strobe.ingest.torch_memory import snapshot as memory_snapshot
from strobe.ingest.torch_memory import timeline as memory_timeline
from strobe.ingest.trace import Trace
from strobe.ingest.xplane import jax_trace
from strobe.ingest.xplane import reader as xplane


class Reader(Protocol):
    """A module. Its docstring says what it reads, and what it leaves out."""

    NAME: str  # as `strobe import` tells it: "torch.profiler"

    def claim(self, folder: Path) -> list[Found]:
        """The traces of a folder that are made of several files; [] for a format of one file."""

    def recognise(self, peek: Peek) -> Found | None:
        """What this file is, by its beginning; None if it is not of this format."""

    def read(self, source: Source, words: Vocabulary) -> Trace:
        """Everything readable, with its texts entered into the rank's vocabulary."""


# The first that recognises a file reads it: the particular before the general.
READERS: tuple[Reader, ...] = (
    strobe_timeline,
    megengine,
    ascend,
    mindspore,
    kineto,
    memory_snapshot,
    memory_timeline,
    xplane,
    jax_trace,
    chrome,
)
