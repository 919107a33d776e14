"""Formats that others write. To add one: write its module, add one line here.

A reader recognises its files by content, says which of them belong to which rank, and fills a
`Trace` from them. What it cannot read it counts in `trace.said` and goes on; it raises
UnreadableTrace only where nothing at all can be had.
"""

import importlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, overload

from strobe.ingest.importing.sources import Found, Peek, Source
from strobe.ingest.trace.spans import Vocabulary
from strobe.ingest.trace.trace import Trace


class Entry(NamedTuple):
    name: str  # the reader's own NAME
    module: str
    # What the beginning of its files holds, as a pattern. Loading every reader before the right one
    # would take as long as reading a small trace.
    holds: bytes = b""


# A record of an event file: its length, a checksum, and a message that begins with its time.
_EVENT = rb"(?s)\A.{12}\x09"
_SQLITE = rb"\ASQLite format 3\0"

# The first that recognises a file reads it: the particular before the general.
_ENTRIES = (
    Entry(
        "Strobe's timeline", "strobe.ingest.formats.chrome.strobe_timeline", rb'"strobe_timeline"',
    ),  # fmt: skip
    Entry("TensorBoard", "strobe.ingest.formats.tensorboard.reader", _EVENT),
    Entry("MindSpore summary", "strobe.ingest.formats.mindspore_summary.reader", _EVENT),
    Entry("W&B", "strobe.ingest.formats.wandb.reader", rb"\A:W&B"),
    Entry("MLflow", "strobe.ingest.formats.mlflow.reader", _SQLITE),
    Entry("trackio", "strobe.ingest.formats.trackio.reader", _SQLITE),
    Entry(
        "MegEngine", "strobe.ingest.formats.megengine.reader",
        rb'"(?:profiler|graph_exec|gpu_usgae_ratio|train_time_ratio|nr_redunant_tensor|OpDispatch'
        rb'|TensorLink|localTime|ph":"B)"',
    ),
    Entry(
        "Ascend profiler", "strobe.ingest.formats.ascend.reader",
        rb'"(?:ts"\s*:\s*"\d|Ascend Hardware"|CANN"|HCCL"|Overlap Analysis"|CPU OP"|async_npu"'
        rb'|async_task_queue"|HostToDevice"|enqueue"|dequeue")',
    ),
    Entry(
        "MindSpore profiler", "strobe.ingest.formats.mindspore.reader",
        rb';HostCpuOps;|;GpuOps;|step_num,start_point|(?:op|kernel)_name, ?stream_id|"op_info"'
        rb"|\[Step:",
    ),
    Entry("torch.profiler", "strobe.ingest.formats.kineto.reader"),
    Entry("PyTorch memory snapshot", "strobe.ingest.formats.torch_memory.snapshot"),
    Entry("torch.profiler memory timeline", "strobe.ingest.formats.torch_memory.timeline"),
    Entry("XPlane (JAX, XLA)", "strobe.ingest.formats.xplane.reader"),
    Entry("JAX trace JSON", "strobe.ingest.formats.xplane.jax_trace"),
    Entry("Chrome trace", "strobe.ingest.formats.chrome.reader"),
)  # fmt: skip

# Readers that hand work out to others (workers.py), by name: for the rest nobody need stand by.
WITH_WORKERS = frozenset({"torch.profiler"})


class Reader(Protocol):
    """A module. Its docstring says what it reads, and what it leaves out."""

    NAME: str  # as `strobe import` tells it: "torch.profiler"

    def claim(self, folder: Path) -> list[Found]:
        """The traces of a folder that are made of several files; [] for a format of one file."""

    def recognise(self, peek: Peek) -> Found | None:
        """What this file is, by its beginning; None if it is not of this format.

        If a file contains several runs, each is one of its `runs`.
        """

    def read(self, source: Source, words: Vocabulary) -> Trace:
        """Everything readable, with its texts entered into the rank's vocabulary."""


class _Readers(Sequence[Reader]):
    """Each is imported when its turn comes: most files are recognised before the last ones."""

    def __len__(self) -> int:
        return len(_ENTRIES)

    def __iter__(self) -> Iterator[Reader]:
        return (self[number] for number in range(len(self)))

    @overload
    def __getitem__(self, number: int) -> Reader: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Reader]: ...
    def __getitem__(self, number: int | slice) -> Reader | Sequence[Reader]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        return _loaded(_ENTRIES[number])

    def named(self, name: str) -> Reader | None:
        return next((_loaded(entry) for entry in _ENTRIES if entry.name == name), None)

    def that_may_read(self, head: bytes) -> Iterator[Reader]:
        """Those to be asked about a file with this beginning, in order."""
        return (_loaded(entry) for entry in _ENTRIES if re.search(entry.holds, head))


def _loaded(entry: Entry) -> Reader:
    reader: Reader = importlib.import_module(entry.module)
    return reader


READERS = _Readers()
