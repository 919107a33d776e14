"""Read the journal of training metrics of a rank, as rows of the tables of metrics."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.recording import automatic
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import UNKNOWN, Metrics, constant
from strobe.ingest.trace.problems import Problems
from strobe.model.automatic_metrics import SAMPLES_PER_SECOND
from strobe.model.journal import Mark
from strobe.model.metric_journal import (
    DEFINITION,
    HEADER_BYTES,
    HYPERPARAMETERS,
    LINEAGE,
    MAGIC,
    PROBLEM,
    RECORD,
    RECORDS_GLOB,
    ROW_HEADER_WORDS,
    SEGMENT_GLOB,
    WORD_BYTES,
    WORDS_SHIFT,
)
from strobe.model.metric_tables import AUTOMATIC, LINEAGE_KINDS
from strobe.model.schema import METRIC_TABLES, PHASES

_TABLES = {"histogram": "histograms", "image": "images", "tensor": "tensors", "text": "texts"}
_COLUMNS = {table.name: table.columns for table in METRIC_TABLES}
# Tags, and who logged them.
_Series = tuple[tuple[str, ...], str]
_RECORDS = "metrics.jsonl"  # where damaged records are reported
_LOW_WORD = (1 << WORDS_SHIFT) - 1
# Runs of rows of one series that are found at once.
_LONGEST_RUN = 1 << 20


def read(raw: Path, marks: Journal, steps: Steps | None, started_unix_ns: int) -> Metrics:
    """Never raises because of a file's content; what cannot be read is a problem of `marks`."""
    metrics = Metrics()
    clock = _Clock(marks, steps, started_unix_ns)
    scalars = _Scalars()
    records: list[dict[str, Any]] = []
    for path in sorted(raw.glob(RECORDS_GLOB)):
        records += _records(path, marks.problems)
    for path in sorted(raw.glob(SEGMENT_GLOB)):
        records += _read_segment(path, scalars, marks.problems)
    scalars.add_to(metrics, clock)
    if steps is not None:
        _add_samples_per_second(metrics, marks, clock, steps)
    _add_records(records, metrics, clock, marks.problems)
    return metrics


class _Clock:
    """From the clock of the process to time and steps of the run."""

    def __init__(self, marks: Journal, steps: Steps | None, started_unix_ns: int) -> None:
        self._marks, self._started_unix_ns = marks, started_unix_ns
        is_data = marks.code == Mark.DATA_CAME
        came_ns = self.to_run_time(marks.ts_ns[is_data])
        self._begins = _work_begins(steps, came_ns) if steps else came_ns[:0]

    def to_run_time(self, monotonic_ns: Array) -> Array:
        return self._marks.to_run_time(monotonic_ns, self._started_unix_ns)

    def of_optimizers(self, times: dict[str, Array]) -> dict[str, tuple[list[str], Array]]:
        """Times are those of the process."""
        return automatic.of_optimizers(times, self._marks, self._marks.ts_ns)

    def step_at(self, ts_ns: Array) -> Array:
        """The training step that these times belong to, from 1."""
        if not len(self._begins):
            return np.full(len(ts_ns), UNKNOWN, dtype=np.int64)
        found = np.searchsorted(self._begins, ts_ns, side="right")
        return np.maximum(found, 1).astype(np.int64)


def _work_begins(steps: Steps, data_came_ns: Array) -> Array:
    """When each step begins to work on its batch.

    A step begins where the one before it ended, with a gap: what a script logs there, before it has
    its next batch, is about the step before.
    """
    begins = np.asarray(steps.step_ts_ns, dtype=np.int64)
    gap_ends = begins.copy()
    is_gap = np.asarray(steps.phase_name) == PHASES.index("gap")
    gap_steps = np.asarray(steps.phase_step)[is_gap] - 1
    is_first = np.asarray(steps.phase_ts_ns)[is_gap] == begins[gap_steps]
    gap_ends[gap_steps[is_first]] += np.asarray(steps.phase_dur_ns)[is_gap][is_first]
    if not len(data_came_ns):
        return gap_ends
    last = np.searchsorted(data_came_ns, gap_ends, side="right") - 1
    came = data_came_ns[np.maximum(last, 0)]
    found: Array = np.where((last >= 0) & (came >= begins), came, gap_ends)
    return found


class _Scalars:
    """Rows of scalars by series, as they are found in the segments."""

    def __init__(self) -> None:
        self._rows: dict[_Series, list[Array]] = {}

    def add(self, tags: tuple[str, ...], source: str, rows: Array) -> None:
        self._rows.setdefault((tags, source), []).append(rows)

    def add_to(self, metrics: Metrics, clock: _Clock) -> None:
        table = metrics["scalars"]
        codes = table.codes["tag"]
        self._divide(clock)
        names = automatic.names(tag for tags, _ in self._rows for tag in tags)
        logged: dict[str, int] = {}  # values by tag so far
        for (tags, source), parts in self._rows.items():
            rows = np.concatenate(parts)
            rows = rows[np.argsort(rows[:, 2], kind="stable")]
            ts_ns = clock.to_run_time(rows[:, 2])
            step = rows[:, 1].copy()
            is_unknown = step == UNKNOWN
            if is_unknown.any():
                step[is_unknown] = clock.step_at(ts_ns[is_unknown])
            values = rows[:, ROW_HEADER_WORDS:].view(np.float64)
            for place, written in enumerate(tags):
                tag = names.get(written, written)
                if tag is None:
                    continue
                own_step = _numbered(step, logged.get(tag, 0), source)
                logged[tag] = logged.get(tag, 0) + len(rows)
                table.add(
                    {
                        "tag": np.full(len(rows), codes[tag], dtype=np.int32),
                        "step": own_step, "ts_ns": ts_ns, "value": values[:, place].copy(),
                        "source": constant(source, len(rows)),
                        "attempt": np.ones(len(rows), dtype=np.int64),
                    }
                )  # fmt: skip

    def _divide(self, clock: _Clock) -> None:
        """One series for each optimizer that trains on a loss."""
        parts = {tags[0]: np.concatenate(rows) for (tags, source), rows in self._rows.items()
                 if source == AUTOMATIC and len(tags) == 1}  # fmt: skip
        times = {tag: rows[:, 2] for tag, rows in parts.items()}
        for tag, (of_each, which) in clock.of_optimizers(times).items():
            del self._rows[(tag,), AUTOMATIC]
            for number, own in enumerate(of_each):
                if (which == number).any():
                    self.add((own,), AUTOMATIC, parts[tag][which == number])


def _add_samples_per_second(metrics: Metrics, marks: Journal, clock: _Clock, steps: Steps) -> None:
    ts_ns = clock.to_run_time(marks.ts_ns)
    step, end_ns, values = automatic.samples_per_second(marks, ts_ns, steps)
    if not len(step):
        return
    table = metrics["scalars"]
    tag = table.codes["tag"][SAMPLES_PER_SECOND]
    table.add(
        {
            "tag": np.full(len(step), tag, dtype=np.int32), "step": step, "ts_ns": end_ns,
            "value": values, "source": constant(AUTOMATIC, len(step)),
            "attempt": np.ones(len(step), dtype=np.int64),
        }
    )  # fmt: skip


def _numbered(step: Array, first: int, source: str) -> Array:
    """A script that has no steps counts its values, from 0; what Strobe adds has no number then."""
    is_unknown = step == UNKNOWN
    if source == AUTOMATIC or not is_unknown.any():
        return step
    found: Array = np.where(is_unknown, first + np.arange(len(step)), step)
    return found


def _read_segment(path: Path, scalars: _Scalars, problems: Problems) -> list[dict[str, Any]]:
    """Takes its scalars; the records in it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        problems.add(path.name, f"these metrics cannot be read: {error.strerror}")
        return []
    if not data.startswith(MAGIC):
        problems.add(path.name, "the header of these metrics is damaged")
    size = max(len(data) - HEADER_BYTES, 0) // WORD_BYTES
    words = np.frombuffer(data, dtype="<i8", count=size, offset=min(HEADER_BYTES, len(data)))
    series: dict[int, _Series | None] = {}
    records: list[dict[str, Any]] = []
    for number, rows in _runs(words, path.name, problems):
        if number & DEFINITION:
            series[number & ~DEFINITION] = _definition(rows[0, 1:])
            continue
        if number & RECORD:
            records += _record(_text(rows[0, 1:]), path.name, problems)
            continue
        known = series.get(number)
        if known is None or len(known[0]) != rows.shape[1] - ROW_HEADER_WORDS:
            problems.add(path.name, "metrics whose names are damaged were left out", len(rows))
            continue
        scalars.add(*known, rows)
    return records


def _runs(words: Array, name: str, problems: Problems) -> Iterator[tuple[int, Array]]:
    """Rows of one kind that follow each other, and their number."""
    place = 0
    while place < len(words) and words[place]:
        first = int(words[place])
        length = first >> WORDS_SHIFT
        if length < ROW_HEADER_WORDS or place + length > len(words):
            problems.add(name, "metrics after a damaged or cut row were lost")
            return
        count = 1 if first & (DEFINITION | RECORD) else _run(words, place, length, first)
        yield first & _LOW_WORD, words[place : place + count * length].reshape(count, length)
        place += count * length


def _run(words: Array, place: int, length: int, first: int) -> int:
    """How many rows of one series follow each other here."""
    ahead, count = 16, 0
    while True:
        heads = words[place + count * length : place + (count + ahead) * length : length]
        heads = heads[: (len(words) - place - count * length) // length]
        differs = np.flatnonzero(heads != first)
        if len(differs):
            return count + int(differs[0])
        count += len(heads)
        if len(heads) < ahead:
            return count
        ahead = min(ahead * 16, _LONGEST_RUN)


def _definition(words: Array) -> _Series | None:
    try:
        found = json.loads(_text(words))
        return tuple(str(tag) for tag in found["tags"]), str(found["source"])
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None


def _text(words: Array) -> bytes:
    return words[1:].tobytes()[: max(0, int(words[0]))]


def _add_records(
    records: list[dict[str, Any]], metrics: Metrics, clock: _Clock, problems: Problems
) -> None:
    """In the order in which they were logged, so that a later setting replaces an earlier one."""
    settings: dict[str, dict[str, Any]] = {}
    for record in sorted(records, key=_logged_at):
        kind = record["type"]
        if kind == PROBLEM:
            problems.add(str(record.get("source", "metrics")), str(record.get("what", "")))
        elif kind == HYPERPARAMETERS:
            settings.update({row["name"]: row for row in _named(record)})
        elif kind == LINEAGE and record.get("kind") in LINEAGE_KINDS:
            step = record.get("step")
            for row in _named(record):
                metrics["lineage"].add_row(
                    kind=record["kind"], step=step if _is_whole(step) else None, **row
                )
        elif kind in _TABLES:
            _add_record(_TABLES[kind], record, metrics, clock, problems)
        else:
            problems.add(_RECORDS, f"a record of an unknown kind was left out: {kind}")
    for row in settings.values():
        metrics["hyperparameters"].add_row(**row)


def _logged_at(record: dict[str, Any]) -> int:
    at = record.get("monotonic_ns")
    return at if isinstance(at, int) else 0


def _records(path: Path, problems: Problems) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        problems.add(path.name, f"these metrics cannot be read: {error.strerror}")
        return
    for number, line in enumerate(lines, start=1):
        if line.strip(b" \r\0"):
            yield from _record(line, path.name, problems, is_last=number == len(lines))


def _record(
    text: bytes, place: str, problems: Problems, is_last: bool = False
) -> list[dict[str, Any]]:
    """The record of a line, if it is one."""
    try:
        record = json.loads(text.decode("utf-8", "replace"))
        if isinstance(record, dict) and isinstance(record.get("type"), str):
            return [record]
    except (ValueError, RecursionError):
        pass
    what = "the last record was cut short" if is_last else "a record is damaged"
    problems.add(place, f"{what}, and was left out")
    return []


def _named(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    values = record.get("values")
    for name, value in values.items() if isinstance(values, dict) else ():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        text = value if isinstance(value, str) else json.dumps(value)
        yield {
            "name": name, "value": text, "number": float(value) if is_number else None,
            "source": str(record.get("source", "")),
        }  # fmt: skip


def _add_record(
    table: str, record: dict[str, Any], metrics: Metrics, clock: _Clock, problems: Problems
) -> None:
    at = record.get("monotonic_ns")
    ts_ns = clock.to_run_time(np.array([at if _is_whole(at) else 0], dtype=np.int64))
    step = record.get("step")
    if not _is_whole(step):
        step = int(clock.step_at(ts_ns)[0])
    row: dict[str, Any] = {"index": 0}
    for column in _COLUMNS[table]:
        value = record.get(column.name)
        if value is not None and column.name in record:
            row[column.name] = value
    row.update(ts_ns=int(ts_ns[0]), step=step, attempt=1)
    row = {c.name: row.get(c.name) for c in _COLUMNS[table] if c.name != "rank"}
    wrong = [
        c.name for c in _COLUMNS[table]
        if c.name != "rank" and not _fits(row[c.name], c.type, c.nullable or c.name == "step")
    ]  # fmt: skip
    if wrong:
        problems.add(_RECORDS, f"a record was left out: its {', '.join(wrong)} is damaged")
        return
    metrics[table].add_row(**row)


def _fits(value: Any, kind: str, nullable: bool) -> bool:
    if value is None:
        return nullable
    if kind == "str":
        return isinstance(value, str)
    if kind == "i64":
        return _is_whole(value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
