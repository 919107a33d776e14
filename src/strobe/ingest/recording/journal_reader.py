"""Read what the recorder of a rank wrote: its marks as columns, its facts as they are."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.model.journal import (
    BATCH_LOADER_SHIFT,
    FACTS_FILE,
    HEADER_BYTES,
    JOURNAL_GLOB,
    MAGIC,
    RECORD,
    SHORT_BATCH_BITS,
    SHORT_BATCH_FIRST_BIT,
    Figure,
    Mark,
)

_RECORD = np.dtype(
    [("ts_ns", "<i8"), ("value", "<i8"), ("ref", "<u4"), ("thread", "<u2"), ("code", "<u2")]
)
assert _RECORD.itemsize == RECORD.size
_KNOWN_CODES = np.array([int(mark) for mark in Mark])
_WHOLE_NUMBERS = {
    "pid", "native_id", "unix_ns", "monotonic_ns", "id", "number", "rank", "world_size",
    "local_rank", "start_ticks", "count",
}  # fmt: skip
_NEEDED = {
    "string": {"id", "text"},
    "problem": {"source", "what"},
    "thread": {"id"},
    "window": {"number"},
    "metadata": {"key", "value"},
}


@dataclass
class Journal:
    """The marks of a rank in order of time (its machine's monotonic clock), and its facts."""

    ts_ns: Array
    value: Array
    ref: Array
    thread: Array
    code: Array
    strings: dict[int, tuple[str, str]] = field(default_factory=dict)  # id: (kind, text)
    facts: list[dict[str, Any]] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)

    def last_fact(self, kind: str) -> dict[str, Any] | None:
        return next((fact for fact in reversed(self.facts) if fact["type"] == kind), None)

    def windows(self) -> dict[int, dict[str, Any]]:
        """The latest fact about every window, by its number."""
        found = (
            f for f in self.facts if f["type"] == "window" and isinstance(f.get("number"), int)
        )
        return {fact["number"]: fact for fact in found}

    def threads(self) -> dict[int, dict[str, Any]]:
        return {fact["id"]: fact for fact in self.facts if fact["type"] == "thread"}

    def text(self, ref: int, otherwise: str) -> str:
        return self.strings.get(ref, ("", otherwise))[1]

    def to_unix_time(self, monotonic_ns: Array) -> Array:
        """Nanoseconds since 1970: interpolated between the moments at which both clocks
        were read.
        """
        ours, wall = self._anchors()
        if not len(ours):
            return np.asarray(monotonic_ns, dtype=np.int64)
        times = np.asarray(monotonic_ns, dtype=np.int64)
        # Interpolate the small difference of the clocks: a double would round the large times.
        drift = (wall - wall[0]) - (ours - ours[0])
        shift = np.interp((times - ours[0]).astype(np.float64), (ours - ours[0]), drift)
        unix_ns: Array = times - ours[0] + wall[0] + np.rint(shift).astype(np.int64)
        return unix_ns

    def to_run_time(self, monotonic_ns: Array, started_unix_ns: int) -> Array:
        """Nanoseconds since the run began."""
        return self.to_unix_time(monotonic_ns) - started_unix_ns

    def _anchors(self) -> tuple[Array, Array]:
        """Pairs (monotonic, wall), increasing in both: a wall clock that was set back must not
        reverse time.
        """
        clock = self.code == Mark.CLOCK
        ours, wall = self.ts_ns[clock], self.value[clock]
        start = next((f for f in self.facts if f["type"] == "process"), {})
        if "monotonic_ns" in start and "unix_ns" in start:
            ours = np.append(np.int64(start["monotonic_ns"]), ours)
            wall = np.append(np.int64(start["unix_ns"]), wall)
        order = np.argsort(ours, kind="stable")
        ours, first = np.unique(ours[order], return_index=True)
        return ours, np.maximum.accumulate(wall[order][first]) if len(ours) else wall


def read(raw: Path) -> Journal:
    """Everything readable in a rank's raw directory; never raises because of a file's content."""
    problems = Problems()
    segments = sorted(raw.glob(JOURNAL_GLOB), key=_number)
    parts = [_records(path, problems) for path in segments]
    records = np.concatenate([np.zeros(0, dtype=_RECORD), *parts])
    facts = read_facts(raw, problems)
    records = _with_short_batches(records, facts)
    records = records[np.argsort(records["ts_ns"], kind="stable")]
    column = {name: records[name].astype(np.int64) for name in _RECORD.names or ()}
    journal = Journal(
        column["ts_ns"], column["value"], column["ref"], column["thread"], column["code"],
        problems=problems,
    )  # fmt: skip
    journal.facts = facts
    for fact in journal.facts:
        if fact["type"] == "string":
            journal.strings[fact["id"]] = (str(fact.get("kind", "")), str(fact["text"]))
        elif fact["type"] == "problem":
            problems.add(str(fact["source"]), str(fact["what"]), fact.get("count", 1))
    return journal


def _number(path: Path) -> tuple[int, str]:
    found = re.search(r"(\d+)", path.name)
    return (int(found.group(1)) if found else 0, path.name)


def _records(path: Path, problems: Problems) -> "np.ndarray[Any, Any]":
    try:
        data = path.read_bytes()
    except OSError as error:
        problems.add(path.name, f"this part of the journal cannot be read: {error.strerror}")
        return np.zeros(0, dtype=_RECORD)
    if not data.startswith(MAGIC):
        problems.add(path.name, "the header of this part of the journal is damaged")
    body = data[HEADER_BYTES:]
    if len(body) % RECORD.size and body[-(len(body) % RECORD.size) :].strip(b"\0"):
        problems.add(path.name, "this part of the journal was cut in the middle of a mark")
    records = np.frombuffer(body, dtype=_RECORD, count=len(body) // RECORD.size)
    records = records[records["code"] != 0]
    known = np.isin(records["code"], _KNOWN_CODES) & (records["ts_ns"] > 0)
    problems.add(path.name, "a mark of an unknown kind was left out", int((~known).sum()))
    whole: np.ndarray[Any, Any] = records[known]
    return whole


def _with_short_batches(
    records: "np.ndarray[Any, Any]", facts: list[dict[str, Any]]
) -> "np.ndarray[Any, Any]":
    """The BATCH marks that the marks of short batches represent."""
    short = np.flatnonzero(
        (records["code"] == Mark.DATA_CAME) & (records["value"] >> SHORT_BATCH_FIRST_BIT > 0)
    )
    if not len(short):
        return records
    came = records[short]
    fetch_ns, off_ns, collate_ns = (
        came["value"] >> SHORT_BATCH_FIRST_BIT + number * SHORT_BATCH_BITS
        & (1 << SHORT_BATCH_BITS) - 1
        for number in range(3)
    )
    figures = {
        Figure.FETCH_NS: fetch_ns, Figure.FETCH_CPU_NS: fetch_ns - off_ns,
        Figure.COLLATE_NS: collate_ns,
    }  # fmt: skip
    told = np.zeros((len(figures), len(came)), dtype=_RECORD)
    loaders = _loader_numbers(came["ref"], facts) << BATCH_LOADER_SHIFT
    for row, (figure, value) in zip(told, figures.items(), strict=True):
        row["ts_ns"] = came["ts_ns"] - fetch_ns - collate_ns
        row["value"], row["ref"], row["thread"] = value, loaders | figure, came["thread"]
        row["code"] = Mark.BATCH
    whole = np.concatenate([records, told.ravel()])
    whole["value"][short] = 1  # the batch came
    return whole


def _loader_numbers(refs: Array, facts: list[dict[str, Any]]) -> Array:
    """By the strings that name loaders: `loader 2: Pictures, 4 workers`."""
    texts = {fact["id"]: str(fact["text"]) for fact in facts if fact["type"] == "string"}
    found, where = np.unique(refs, return_inverse=True)
    named = (re.match(r"loader (\d+)", texts.get(int(ref), "")) for ref in found)
    numbers: Array = np.array([int(name[1]) if name else 0 for name in named], dtype=np.int64)
    return numbers[where]


def read_facts(raw: Path, problems: Problems) -> list[dict[str, Any]]:
    """The readable lines of facts.jsonl."""
    path = raw / FACTS_FILE
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        problems.add(path.name, f"the facts of this rank cannot be read: {error.strerror}")
        return []
    facts = []
    for number, line in enumerate(lines, start=1):
        if not line.strip(b" \r\0"):
            continue
        fact = _fact(line)
        if fact is not None:
            facts.append(fact)
        elif number == len(lines):
            problems.add(path.name, "the last fact was cut short: the process died while writing")
        else:
            problems.add(path.name, "a line is not a fact that can be read, and was left out")
    return facts


def _fact(line: bytes) -> dict[str, Any] | None:
    """A line as an object with a type; invalid numbers are removed from it."""
    try:
        fact = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(fact, dict) or not isinstance(fact.get("type"), str):
        return None
    fact = {key: v for key, v in fact.items() if key not in _WHOLE_NUMBERS or _is_whole(v)}
    return fact if _NEEDED.get(fact["type"], set()) <= fact.keys() else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
