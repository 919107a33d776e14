"""Everything that was read of one rank, before it becomes tables: every reader fills one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.column_spool import Pile
from strobe.ingest.trace.metric_rows import Metrics
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.span_spool import HELD_ROWS, Spool
from strobe.ingest.trace.spans import Spans, Vocabulary

if TYPE_CHECKING:
    from strobe.ingest.formats.chrome.tables import TableRows

# The columns of stored tables that are moments, and move with the zero of time.
MOMENTS = ("ts_ns", "freed_ns")


class Samples(NamedTuple):
    """Values of counters, or lengths of queues, at moments. `name` is a number of words.names."""

    ts_ns: Array
    name: Array
    value: Array
    capacity: Array | None = None  # of queues; -1 if unknown


class Counters:
    """Samples of counters that may exceed memory: a spool of moments with values."""

    def __init__(self) -> None:
        self._moments = Spool()

    def append(self, part: Samples) -> None:
        nothing = np.zeros(len(part.ts_ns), dtype=np.int8)
        value = {"value": part.value.astype(np.float64)}
        self._moments.append(Spans(part.ts_ns, nothing, nothing, part.name, nothing, value))

    def __iadd__(self, parts: Iterable[Samples]) -> "Counters":
        for part in parts:
            self.append(part)
        if isinstance(parts, Counters):
            parts.clear()
        return self

    def __iter__(self) -> Iterator[Samples]:
        """In the order they arrived."""
        return (_samples(part) for part in self._moments)

    def __len__(self) -> int:
        return self._moments.rows

    def first_ns(self) -> int | None:
        return self._moments.first_ns()

    def shift(self, by_ns: int) -> None:
        self._moments.shift(by_ns)

    def clear(self) -> None:
        self._moments.clear()

    def slices(self) -> Iterator[Samples]:
        """In order of time; the spool is empty afterwards."""
        return (_samples(part.spans) for part in self._moments.slices())


def _samples(moments: Spans) -> Samples:
    return Samples(moments.ts_ns, moments.name, moments.arg("value"))


class Memory(NamedTuple):
    """Instants at which memory was allocated (bytes > 0) or freed (bytes < 0)."""

    ts_ns: Array
    track: Array  # of the thread that did it; -1 if unknown
    address: Array
    bytes: Array
    device: Array  # a number of words.texts: cpu, cuda:0


class Flows(NamedTuple):
    """Links between spans of one source, by the numbers in their argument `number`."""

    cause: Array
    effect: Array
    kind: Array  # a number of words.texts
    window: int  # the argument `window` of those spans


@dataclass
class FlowParts:
    """Flows that may exceed memory: columns cause, effect and kind, as in Flows."""

    parts: Pile
    window: int
    highest: int  # no number of theirs is higher


@dataclass
class About:
    """What a trace says about the process that wrote it, for run.json."""

    world_size: int | None = None
    local_rank: int | None = None
    host: str = ""
    pid: int = 0
    frameworks: dict[str, str] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)

    def joined(self, other: "About") -> "About":
        """The information of both traces."""
        known = {f.name: getattr(self, f.name) or getattr(other, f.name) for f in fields(self)}
        return About(**known)


@dataclass
class Trace:
    """Times are in nanoseconds: since 1970 if `is_unix`, otherwise from an arbitrary zero.

    Before they become tables, they are moved to count from the start of the run.
    """

    words: Vocabulary = field(default_factory=Vocabulary)
    said: Problems = field(default_factory=Problems)
    spans: Spool = field(default_factory=lambda: Spool(held_rows=HELD_ROWS))
    memory: list[Memory] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    queues: list[Samples] = field(default_factory=list)
    flows: list[Flows | FlowParts] = field(default_factory=list)
    # Stored tables besides the events, as columns: batches, places, samples, and the metrics.
    further: dict[str, dict[str, Any]] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)  # that may be more than memory holds
    # Complete stored tables, from a source that has them: nothing is derived then.
    ready: "dict[str, TableRows]" = field(default_factory=dict)
    steps: Steps | None = None
    is_unix: bool = False
    is_without_flops: bool = False  # the options did not request them
    about: About = field(default_factory=About)

    def first_ns(self) -> int:
        """The first moment of anything in it; 0 if it is empty."""
        samples = [part.ts_ns for part in self.queues]
        samples += [self.steps.step_ts_ns] if self.steps is not None else []
        times = [*samples, *(part.ts_ns for part in self.memory)]
        first = [int(ts_ns.min()) for ts_ns in times if len(ts_ns)]
        parts: list[Spool | Counters | Metrics | TableRows]
        parts = [self.spans, self.counters, self.metrics, *self.ready.values()]
        first += [at for at in (part.first_ns() for part in parts) if at is not None]
        return min(first, default=0)

    def shift(self, by_ns: int) -> None:
        """Move all times to another zero."""
        self.spans.shift(by_ns)
        self.counters.shift(by_ns)
        self.metrics.shift(by_ns)
        self.memory = [part._replace(ts_ns=part.ts_ns + by_ns) for part in self.memory]
        self.queues = [part._replace(ts_ns=part.ts_ns + by_ns) for part in self.queues]
        for table in self.ready.values():
            table.shift(by_ns)
        for columns in self.further.values():
            columns |= {name: columns[name] + by_ns for name in MOMENTS if name in columns}
        if self.steps is not None:
            self.steps = replace(
                self.steps,
                step_ts_ns=self.steps.step_ts_ns + by_ns,
                phase_ts_ns=self.steps.phase_ts_ns + by_ns,
            )

    def take(self, other: "Trace") -> None:
        """Add another trace of the same rank, which has the same vocabulary and the same zero of
        time.
        """
        self.said.update(other.said)
        self.spans += other.spans
        self.memory += other.memory
        self.counters += other.counters
        self.metrics.take(other.metrics)
        self.queues += other.queues
        self.flows += other.flows
        self.further = self.further or other.further
        self.ready = self.ready or other.ready
        self.steps = _both(self.steps, other.steps)
        self.about = self.about.joined(other.about)


def _both(first: Steps | None, second: Steps | None) -> Steps | None:
    """The steps of two traces, one after the other."""
    if first is None or second is None:
        return first or second
    if second.step_ts_ns[:1].tolist() < first.step_ts_ns[:1].tolist():
        first, second = second, first
    return Steps(
        np.concatenate([first.step_ts_ns, second.step_ts_ns]),
        np.concatenate([first.step_dur_ns, second.step_dur_ns]),
        np.concatenate([first.phase_step, second.phase_step + len(first.step_ts_ns)]),
        np.concatenate([first.phase_name, second.phase_name]),
        np.concatenate([first.phase_ts_ns, second.phase_ts_ns]),
        np.concatenate([first.phase_dur_ns, second.phase_dur_ns]),
        first.problems + second.problems,
    )


def no_steps() -> Steps:
    nothing = np.zeros(0, dtype=np.int64)
    return Steps(nothing, nothing, nothing, nothing, nothing, nothing, [])


def joined_samples(parts: list[Samples]) -> dict[str, Any]:
    """All samples as columns; capacity is -1 if unknown."""
    nothing = np.zeros(0, dtype=np.int64)
    unknown = [np.full(len(p.ts_ns), -1) if p.capacity is None else p.capacity for p in parts]
    return {
        "ts_ns": np.concatenate([nothing, *(p.ts_ns for p in parts)]),
        "name": np.concatenate([nothing, *(p.name for p in parts)]).astype(np.int32),
        "value": np.concatenate([nothing, *(p.value for p in parts)]),
        "capacity": np.concatenate([nothing, *unknown]),
    }
