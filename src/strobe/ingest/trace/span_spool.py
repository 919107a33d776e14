"""Spans of a rank that may exceed memory: stored, and returned in slices of time.

They are returned sorted by time, in slices of about SLICE_ROWS. Up to a limit they stay in memory;
beyond it, all go to files in a scratch folder: three passes over the columns, regardless of their
number.
"""

import contextlib
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, in_order_once
from strobe.ingest.trace.spans import Spans

SLICE_ROWS = 200_000
# The limit of spans in memory per rank, some 80 bytes each: writing and reading them would take a
# tenth of the time of reading a trace below this limit.
HELD_ROWS = 1_000_000
_SAMPLES_A_SLICE = 4096
_END_OF_TIME = 2**63 - 1


class Slice(NamedTuple):
    spans: Spans
    until_ns: int  # the next slice begins here


# Where spools write what does not fit into memory; readers need not know.
_scratch: ContextVar[Path | None] = ContextVar("scratch", default=None)


@contextlib.contextmanager
def scratch_in(folder: Path) -> Iterator[None]:
    """Spools created inside this block write their files to this folder."""
    token = _scratch.set(folder)
    try:
        yield
    finally:
        _scratch.reset(token)


def scratch() -> Path | None:
    return _scratch.get()


class Spool:
    def __init__(self, slice_rows: int | None = None, held_rows: int = 0) -> None:
        self._scratch, self._slice_rows = _scratch.get(), slice_rows or SLICE_ROWS
        self._held_rows = max(held_rows, self._slice_rows)
        self._folder: Path | None = None
        self._parts: list[Spans] = []  # in memory, not yet on disk
        self._files: list[Path] = []
        self._samples: list[Array] = []
        self._shift_ns = 0
        self._first_ns: int | None = None
        self.rows = 0

    def append(self, part: Spans) -> None:
        """Long parts are split: what is stored together is loaded together."""
        if self._is_too_much(len(part)) and len(part) > self._slice_rows:
            for start in range(0, len(part), self._slice_rows):
                self.append(part.between(start, start + self._slice_rows))
            self._to_disk()  # keeping a piece in memory would keep all of the long columns
            return
        if not len(part):
            return
        part.ts_ns = part.ts_ns - self._shift_ns
        self.rows += len(part)
        first = int(part.ts_ns.min())
        self._first_ns = first if self._first_ns is None else min(first, self._first_ns)
        self._parts.append(part)
        some = part.ts_ns[:: max(1, self._slice_rows // _SAMPLES_A_SLICE)]
        self._samples.append(some.copy())  # a view would keep the whole column
        if self._is_too_much(0):
            self._to_disk()

    def _is_too_much(self, more_rows: int) -> bool:
        """Whether it exceeds the limit; if there is data on disk already, the limit is
        one slice.
        """
        most = self._slice_rows if self._files else self._held_rows
        return self._scratch is not None and sum(map(len, self._parts)) + more_rows > most

    def __iadd__(self, parts: Iterable[Spans]) -> "Spool":
        for part in parts:
            self.append(part)
        if isinstance(parts, Spool):
            parts.clear()
        return self

    def __iter__(self) -> Iterator[Spans]:
        """The parts in the order they arrived."""
        for part in self._stored():
            yield self._shifted(part)

    def __len__(self) -> int:
        return len(self._files) + len(self._parts)

    def first_ns(self) -> int | None:
        return None if self._first_ns is None else self._first_ns + self._shift_ns

    def shift(self, by_ns: int) -> None:
        self._shift_ns += by_ns

    def slices(self) -> Iterator[Slice]:
        """All spans by start, longer ones first; the spool is empty afterwards."""
        if self.rows <= self._slice_rows or self._scratch is None:
            yield Slice(spans_of.joined(list(self)), _END_OF_TIME)
        elif self._files:
            self._to_disk()
            yield from self._slices_on_disk()
        else:
            yield from self._slices_in_memory()
        self.clear()

    def clear(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self._parts, self._files, self._samples = None, [], [], []
        self.rows, self._first_ns = 0, None

    def _slices_in_memory(self) -> Iterator[Slice]:
        cuts = self._cuts()
        buckets: list[list[Spans]] = [[] for _ in range(len(cuts) + 1)]
        while self._parts:  # nothing is in memory twice
            for number, some in _dealt(self._parts.pop(0), cuts):
                buckets[number].append(some)
        for until_ns in self._ends(cuts):
            yield self._slice(buckets.pop(0), until_ns)

    def _slices_on_disk(self) -> Iterator[Slice]:
        cuts = self._cuts()
        buckets = [self._new_file(f"slice-{number}") for number in range(len(cuts) + 1)]
        for part in self._stored():
            for number, some in _dealt(part, cuts):
                dump(buckets[number], some)
        for path in self._files:
            path.unlink()
        for bucket, until_ns in zip(buckets, self._ends(cuts), strict=True):
            bucket.close()
            path = Path(bucket.name)
            yield self._slice(load(path), until_ns)
            path.unlink()

    def _slice(self, parts: Iterable[Spans], until_ns: int) -> Slice:
        return Slice(spans_of.joined([self._shifted(part) for part in parts]), until_ns)

    def _ends(self, cuts: Array) -> list[int]:
        return [*(cuts + self._shift_ns).tolist(), _END_OF_TIME]

    def _cuts(self) -> Array:
        """Moments that cut the whole into equal slices, estimated from a sample of each part."""
        sample = np.sort(np.concatenate(self._samples))
        count = -(-self.rows // self._slice_rows)
        places = np.arange(1, count) * len(sample) // count
        return in_order_once(sample[places])

    def _stored(self) -> Iterator[Spans]:
        for path in self._files:
            yield from load(path)
        yield from self._parts

    def _shifted(self, part: Spans) -> Spans:
        return replace(part, ts_ns=part.ts_ns + self._shift_ns)

    def _to_disk(self) -> None:
        if not self._parts:
            return
        with self._new_file(f"part-{len(self._files)}") as file:
            for part in self._parts:
                dump(file, part)
        self._files.append(Path(file.name))
        self._parts = []

    def _new_file(self, name: str) -> IO[bytes]:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=".spool-", dir=self._scratch))
        return (self._folder / name).open("wb")


def _dealt(part: Spans, cuts: Array) -> Iterator[tuple[int, Spans]]:
    """The spans of a part by slice."""
    where = np.searchsorted(cuts, part.ts_ns, side="right")
    first, last = int(where.min()), int(where.max())
    if first == last:
        yield first, part
        return
    for number in range(first, last + 1):
        rows = np.flatnonzero(where == number)
        if len(rows):
            yield number, part.take(rows)


def dump(file: IO[bytes], part: Any) -> None:
    pickle.dump(part, file, protocol=5)


def load(path: Path) -> Iterator[Any]:
    """All parts dumped to one of our files, in order."""
    with path.open("rb") as file:
        while True:
            try:
                found = pickle.load(file)
            except EOFError:
                return
            yield found
