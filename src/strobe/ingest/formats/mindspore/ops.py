"""The operators that MindSpore's host ran: FRAMEWORK/cpu_op_execute_timestamp_0.txt and its kin.

    Default/network-Net/fc-Dense/MatMul-op1;HostCpuOps;1794765271125214378,0.020641,0 ...

One line an operator, then each of its runs: start in ns, length in ms, thread. On a GPU lengths are
in microseconds and threads are not told. cpu_framework_0.txt has a line for every run in order of
time, with the shapes of its inputs: it is joined by that order if all names agree.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend import csv_table as ascend_csv
from strobe.ingest.formats.ascend.numbers import NEVER, integers, lengths, moments
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore.names import BACKWARD, Meaning, meaning
from strobe.ingest.formats.mindspore.phases import PARTS, Work
from strobe.ingest.formats.mindspore.work import flops_of
from strobe.ingest.trace.codes import Array, Codes, distinct
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Track, Vocabulary
from strobe.ingest.trace.trace import Samples

_MS_NS, _US_NS = 10**6, 1000
_LONGEST_LINE = 64 << 20
_SHAPE = re.compile(r"input_\d+:(\[[\d, -]*\]|NoShape)")
_MEMORY: ascend_csv.Names = {
    "ts_ns": ("Timestamp",), "allocated": ("Total Allocated",), "reserved": ("Total Reserved",),
    "active": ("Total Active",),
}  # fmt: skip


@dataclass
class Operators:
    """Columns in order of time."""

    ts_ns: Array
    dur_ns: Array
    name: Array  # into names
    thread: Array
    shapes: Array  # into shape_texts; -1 where unknown
    names: list[str]
    shape_texts: list[str]

    @property
    def meanings(self) -> list[Meaning]:
        return [meaning(name) for name in self.names]

    def work(self) -> Work:
        part = np.array([PARTS.index(m.part) for m in self.meanings] or [0])
        collective = np.array([m.is_collective for m in self.meanings] or [False])
        end_ns = self.ts_ns + self.dur_ns
        return Work(self.ts_ns, end_ns, part[self.name], collective[self.name])


def read(path: Path, framework: Path | None, said: Problems) -> Operators:
    names = Codes[str]()
    parts = [_runs(line, names, path, said) for line in lines(path, said)]
    empty = np.zeros(0, dtype=np.int64)
    ts_ns, dur_ns, name, thread = (
        np.concatenate([empty, *(part[i] for part in parts)]) for i in range(4)
    )
    order = np.argsort(ts_ns, kind="stable")
    found = Operators(
        ts_ns[order], dur_ns[order], name[order], thread[order],
        np.full(len(order), -1, dtype=np.int64), list(names), [],
    )  # fmt: skip
    if framework is not None:
        _put_shapes(found, framework, said)
    return found


def spans(found: Operators, words: Vocabulary, number: int, process: int | None) -> Spans:
    meanings = found.meanings
    threads, back = np.unique(found.thread, return_inverse=True)
    tracks = []
    for thread in threads.tolist():
        track = Track("cpu", process, thread)
        words.track_names.setdefault(track, f"operators {thread}" if thread else "operators")
        tracks.append(words.tracks[track])
    kinds = [KIND["collective" if m.is_collective else "op"] for m in meanings]
    args = {
        "scope": [words.scopes[m.scope] if m.scope else -1 for m in meanings],
        "node": [words.texts[name] for name in found.names],
        "backward": [int(m.part == BACKWARD) for m in meanings],
        "part": [PARTS.index(m.part) for m in meanings],
    }
    texts = [words.texts[text] for text in found.shape_texts]
    return Spans(
        found.ts_ns, found.dur_ns, _table(kinds)[found.name],
        _table([words.names[m.type] for m in meanings])[found.name], _table(tracks)[back],
        {
            "window": np.full(len(back), number, dtype=np.int64),
            "dims": _table(texts)[found.shapes],
            "flops": _flops(found),
            **{name: _table(values)[found.name] for name, values in args.items()},
        },
    )  # fmt: skip


def _flops(found: Operators) -> Array:
    meanings = found.meanings
    pairs, back = distinct([found.name, found.shapes])
    work = flops_of(
        (meanings[name], found.shape_texts[shapes] if shapes >= 0 else "") for name, shapes in pairs
    )
    return np.array([*work, -1], dtype=np.int64)[back]


def memory(path: Path, words: Vocabulary, said: Problems) -> list[Samples]:
    """cpu_ms_memory_record_0.txt: what the pool held, as counters."""
    found = []
    for part in ascend_csv.parts(path, _MEMORY, ("ts_ns",), said):
        ts_ns = integers(part.text("ts_ns"))
        for amount in ("allocated", "reserved", "active"):
            value = integers(part.text(amount))
            known = (ts_ns > 0) & (value >= 0)
            name = np.full(int(known.sum()), words.names[f"memory pool {amount} (bytes)"])
            found.append(Samples(ts_ns[known], name, value[known]))
    return [samples for samples in found if len(samples.ts_ns)]


def lines(path: Path, said: Problems) -> Iterator[str]:
    """The lines of a text file without their ends; one that goes on and on is left out."""
    parts: list[bytes] = []
    size = 0
    for block in compressed.blocks(path, lambda what: said.add(path.name, what)):
        *whole, rest = block.split(b"\n")
        for line in whole:
            if size < _LONGEST_LINE:
                yield (b"".join(parts) + line).decode("utf-8", "replace").strip()
            parts, size = [], 0
        size += len(rest)
        parts = [*parts, rest] if size < _LONGEST_LINE else []
        if size >= _LONGEST_LINE > size - len(rest):
            said.add(path.name, "a line is longer than 64 MiB and was left out")
    if parts and size:
        yield b"".join(parts).decode("utf-8", "replace").strip()


def _runs(line: str, names: Codes[str], path: Path, said: Problems) -> tuple[Array, ...]:
    name, _, rest = line.partition(";")
    side, _, told = rest.partition(";")
    cells = [cell.split(",") for cell in told.split()]
    whole = [cell for cell in cells if len(cell) in (2, 3)]
    ts_ns = moments([cell[0] for cell in whole], 1)
    dur_ns = lengths([cell[1] for cell in whole], _US_NS if side == "GpuOps" else _MS_NS)
    thread = integers([cell[2] if len(cell) > 2 else "0" for cell in whole])
    known = (ts_ns != NEVER) & (ts_ns > 0) & (dur_ns >= 0)
    lost = len(cells) - int(known.sum())
    said.add(path.name, "a run of an operator has no time or length and was left out", lost)
    if line and not side:
        said.add(path.name, "a line tells of no operator and was left out")
    code = names[name] if known.any() else 0
    return (
        ts_ns[known],
        dur_ns[known],
        np.full(int(known.sum()), code),
        np.maximum(thread[known], 0),
    )


def _put_shapes(found: Operators, path: Path, said: Problems) -> None:
    """Line by line, unless a name is another than that of the run."""
    texts, codes = Codes[str](), []
    told = [line.split(";") for line in lines(path, said)]
    last = [name.rsplit("/", 1)[-1] for name in found.names]
    agrees = len(told) == len(found.name) and all(
        len(cells) > 1 and cells[1] in ("", last[name])
        for cells, name in zip(told, found.name.tolist(), strict=True)
    )
    if not agrees:
        said.add(path.name, "it does not list the runs of operators in their order:"
                 " the shapes of their inputs are unknown")  # fmt: skip
        return
    for cells in told:
        shapes = [json.loads(s) if s != "NoShape" else [] for s in _SHAPE.findall(";".join(cells))]
        codes.append(texts[json.dumps(shapes)] if shapes else -1)
    found.shapes = np.array(codes, dtype=np.int64)
    found.shape_texts = list(texts)


def _table(values: list[int]) -> Array:
    return np.array([*values, -1], dtype=np.int32)
