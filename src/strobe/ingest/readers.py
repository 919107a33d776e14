"""Formats that others write. To add one: write its module, add one line here.

A reader recognises its files by content, says which of them belong to which rank, and fills a
`Trace` from them. What it cannot read it counts in `trace.said` and goes on; it raises
UnreadableTrace only where nothing at all can be had.
"""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, overload

from strobe.ingest.sources import Found, Peek, Source
from strobe.ingest.spans import Vocabulary
from strobe.ingest.trace import Trace

# The first that recognises a file reads it: the particular before the general.
_MODULES = (
    "strobe.ingest.chrome.strobe_timeline",
    "strobe.ingest.megengine.reader",
    "strobe.ingest.ascend.reader",
    "strobe.ingest.mindspore.reader",
    "strobe.ingest.kineto.reader",
    "strobe.ingest.torch_memory.snapshot",
    "strobe.ingest.torch_memory.timeline",
    "strobe.ingest.xplane.reader",
    "strobe.ingest.xplane.jax_trace",
    "strobe.ingest.chrome.reader",
)

# Readers that hand work out to others (workers.py), by name: for the rest nobody need stand by.
WITH_WORKERS = frozenset({"torch.profiler"})


class Reader(Protocol):
    """A module. Its docstring says what it reads, and what it leaves out."""

    NAME: str  # as `strobe import` tells it: "torch.profiler"

    def claim(self, folder: Path) -> list[Found]:
        """The traces of a folder that are made of several files; [] for a format of one file."""

    def recognise(self, peek: Peek) -> Found | None:
        """What this file is, by its beginning; None if it is not of this format."""

    def read(self, source: Source, words: Vocabulary) -> Trace:
        """Everything readable, with its texts entered into the rank's vocabulary."""


class _Readers(Sequence[Reader]):
    """Each is imported when its turn comes: most files are recognised before the last ones."""

    def __len__(self) -> int:
        return len(_MODULES)

    def __iter__(self) -> Iterator[Reader]:
        return (self[number] for number in range(len(self)))

    @overload
    def __getitem__(self, number: int) -> Reader: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Reader]: ...
    def __getitem__(self, number: int | slice) -> Reader | Sequence[Reader]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        reader: Reader = importlib.import_module(_MODULES[number])
        return reader


READERS = _Readers()
