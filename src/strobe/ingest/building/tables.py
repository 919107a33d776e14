"""The tables of one rank, built from its trace one slice of time after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from strobe.ingest.building import allocations, arguments, event_links
from strobe.ingest.building.slice_state import carried
from strobe.ingest.formats import python_frames
from strobe.ingest.formats.kinds import KIND, KIND_NAMES
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array, Codes, strings
from strobe.ingest.trace.span_spool import Slice
from strobe.ingest.trace.spans import STEPS_TRACK, Spans, Vocabulary
from strobe.ingest.trace.trace import FlowParts, Flows, Samples, Trace, joined_samples, no_steps
from strobe.model.schema import METRIC_TABLES, PHASES, RANK_SHIFT
from strobe.store.columns import picked
from strobe.store.nullable import Nullable

Tables = dict[str, dict[str, Any]]

_OF_HOST = ("cpu", STEPS_TRACK.device)


def tables(trace: Trace, rank: int) -> Iterator[Tables]:
    """Every stored table, by name, as columns: those of events in parts, in order of time."""
    if trace.ready:
        for name, table in trace.ready.items():
            for columns in table.parts():
                yield {name: columns}
        yield {"problems": trace.said.columns(rank)}
        return
    steps = trace.steps or no_steps()
    trace.spans += _step_spans(steps, trace.words)
    builder = _Builder(trace, rank, steps)
    for part in trace.spans.slices():
        yield builder.take(part)
    yield from builder.flows()
    for samples in trace.counters.slices():
        yield {"counters": _counters(samples, trace.words, rank)}
    yield from trace.metrics.parts(rank)
    yield builder.finish()


class _Builder:
    """Processes the slices. What may still be referred to is carried over to the next slice: spans
    that have not ended, calls whose kernel has not come, operators whose gradient has not.
    """

    def __init__(self, trace: Trace, rank: int, steps: Steps) -> None:
        self._trace, self._rank, self._steps = trace, rank, steps
        self._first_id = self._next_id = rank << RANK_SHIFT
        self._carried: list[Spans] = []
        self._memory = allocations.joined(trace.memory)
        self._inside: list[Array] = []  # ids of the events around the instants of memory so far
        self._instants_done = 0
        self._id_of = _places_for_ids(trace.flows)
        self._has_device = any(track.device not in _OF_HOST for track in trace.words.tracks)

    def take(self, part: Slice) -> Tables:
        words = self._trace.words
        spans = spans_of.joined([*self._carried, part.spans]) if self._carried else part.spans
        is_own = spans.arg("id") < 0
        ids = np.where(is_own, self._next_id + np.cumsum(is_own) - 1, spans.arg("id"))
        self._next_id += int(is_own.sum())
        parent = python_frames.parents(spans)
        links = event_links.links(spans, parent, words)
        result = {
            "events": _events(spans, ids, parent, links, self._steps, words, self._first_id),
            "op_args": arguments.op_args(spans, parent, links.is_backward, words),
            "kernel_args": arguments.kernel_args(spans, words),
            "collective_args": arguments.collective_args(spans, words),
        }
        if self._trace.is_without_flops:
            unknown = np.zeros(len(result["op_args"]["bytes"]), dtype=np.int64)
            result["op_args"]["flops"] = Nullable(unknown, np.ones(len(unknown), dtype=np.bool_))
        for name, columns in result.items():
            rows = columns.pop("event_id") if "event_id" in columns else np.arange(len(spans))
            if name != "events":
                columns["event_id"] = ids[rows]
            result[name] = columns if is_own.all() else picked(columns, is_own[rows])
        result["links"] = _links(links, spans, parent, ids, is_own)
        self._place_memory(part, spans, parent, ids)
        self._number(spans, ids, is_own)
        rest = carried(spans, links, ids, part.until_ns, has_device=self._has_device)
        self._carried = [rest] if len(rest) else []
        return result

    def finish(self) -> Tables:
        trace, words, rank = self._trace, self._trace.words, self._rank
        inside = np.concatenate([np.zeros(0, dtype=np.int64), *self._inside])
        return {
            "allocations": allocations.allocations(
                self._memory, inside, words=words, rank=rank, said=trace.said
            ),
            "queues": _queues(trace.queues, words, rank),
            "tracks": _tracks(words, rank, self._first_id),
            "problems": trace.said.columns(rank),
            **{name: trace.further.get(name, {}) for name in ("batches", "places", "samples")},
            **{table.name: trace.further.get(table.name, {}) for table in METRIC_TABLES},
        }

    def _place_memory(self, part: Slice, spans: Spans, parent: Array, ids: Array) -> None:
        done = self._instants_done
        end = int(np.searchsorted(self._memory.ts_ns, part.until_ns))
        rows = allocations.containing(
            self._memory.track[done:end], self._memory.ts_ns[done:end], spans, parent
        )
        self._inside.append(np.where(rows >= 0, ids[rows], -1) if len(ids) else rows)
        self._instants_done = end

    def _number(self, spans: Spans, ids: Array, is_own: Array) -> None:
        """Remember the id for a number of a source, if flows will need it."""
        window, number = spans.arg("window"), spans.arg("number")
        for which, id_of in self._id_of.items():
            asked = is_own & (window == which) & (number >= 0) & (number < len(id_of))
            id_of[number[asked]] = ids[asked]

    def flows(self) -> Iterator[Tables]:
        """The links recorded as flows, part by part."""
        texts = self._trace.words.texts
        for flow in _flow_parts(self._trace.flows):
            id_of = self._id_of[flow.window]
            columns = {"from_id": id_of[flow.cause], "to_id": id_of[flow.effect]}
            yield {"links": {**columns, "kind": strings(flow.kind, texts)}}


def _places_for_ids(flows: list[Flows | FlowParts]) -> dict[int, Array]:
    """For each window with flows, where to store the ids of the spans that they may refer to."""
    highest: dict[int, int] = {}
    for flow in flows:
        asked = (
            flow.highest if isinstance(flow, FlowParts)
            else max(flow.cause.max(initial=-1), flow.effect.max(initial=-1))
        )  # fmt: skip
        highest[flow.window] = max(int(asked), highest.get(flow.window, -1))
    return {window: np.zeros(most + 1, dtype=np.int64) for window, most in highest.items()}


def _flow_parts(flows: list[Flows | FlowParts]) -> Iterator[Flows]:
    for flow in flows:
        if isinstance(flow, Flows):
            yield flow
            continue
        for part in flow.parts:
            yield Flows(**part, window=flow.window)
        flow.parts.clear()


def _step_spans(steps: Steps, words: Vocabulary) -> list[Spans]:
    track = words.tracks[STEPS_TRACK]
    words.track_names[STEPS_TRACK] = "steps"
    count = len(steps.step_ts_ns)
    numbers = np.arange(1, count + 1)
    names = words.names.of((f"step {number}" for number in numbers.tolist()), count)
    whole = spans_of.make(
        steps.step_ts_ns, steps.step_dur_ns, KIND["step"], names, np.full(count, track)
    )
    whole.args["step"] = numbers
    phase_names = np.array([words.names[phase] for phase in PHASES])
    phases = spans_of.make(
        steps.phase_ts_ns, steps.phase_dur_ns, KIND["phase"],
        phase_names[np.asarray(steps.phase_name, dtype=np.int64)],
        np.full(len(steps.phase_ts_ns), track),
    )  # fmt: skip
    phases.args["step"] = np.asarray(steps.phase_step, dtype=np.int64)
    return [whole, phases]


def _events(
    spans: Spans, ids: Array, parent: Array, links: event_links.Links, steps: Steps,
    words: Vocabulary, first_id: int,
) -> dict[str, Any]:  # fmt: skip
    given = spans.arg("step")
    step = event_links.steps_of(spans.ts_ns, steps.step_ts_ns, steps.step_dur_ns)
    step = np.where(given > 0, given, step)
    return {
        "id": ids,
        "track_id": spans.track.astype(np.int64) + first_id,
        "ts_ns": spans.ts_ns,
        "dur_ns": spans.dur_ns,
        "kind": strings(spans.kind, KIND_NAMES),
        "name": strings(spans.name, words.names),
        "step": Nullable(step, step <= 0),
        "parent_id": _ids_of(parent, ids),
        "launcher_id": _ids_of(links.launcher, ids),
        "scope": strings(links.scope, words.scopes),
    }


def _ids_of(rows: Array, ids: Array) -> Any:
    return Nullable(ids[rows] if len(ids) else rows, rows < 0)


def _tracks(words: Vocabulary, rank: int, first_id: int) -> dict[str, Any]:
    tracks, texts = list(words.tracks), Codes[str]()
    process = [track.process for track in tracks]
    thread = [track.thread for track in tracks]
    return {
        "id": np.arange(len(tracks), dtype=np.int64) + first_id,
        "rank": np.full(len(tracks), rank, dtype=np.int64),
        "device": strings(texts.of(track.device for track in tracks), texts),
        "name": strings(texts.of(words.track_names[track] for track in tracks), texts),
        "process": _optional(process),
        "thread": _optional(thread),
    }


def _optional(values: list[int | None]) -> Any:
    known = np.array([value or 0 for value in values], dtype=np.int64)
    return Nullable(known, np.array([value is None for value in values], dtype=np.bool_))


def _links(
    links: event_links.Links, spans: Spans, parent: Array, ids: Array, is_own: Array
) -> dict[str, Any]:
    forward, backward = event_links.forward_backward(links, spans, parent)
    forward, backward = forward[is_own[backward]], backward[is_own[backward]]
    return {
        "from_id": ids[forward],
        "to_id": ids[backward],
        "kind": strings(np.zeros(len(forward), dtype=np.int32), ["forward_backward"]),
    }


def _counters(samples: Samples, words: Vocabulary, rank: int) -> dict[str, Any]:
    return {
        "rank": np.full(len(samples.ts_ns), rank, dtype=np.int64),
        "ts_ns": samples.ts_ns,
        "name": strings(samples.name, words.names),
        "value": samples.value.astype(np.float64),
    }


def _queues(parts: list[Samples], words: Vocabulary, rank: int) -> dict[str, Any]:
    samples = joined_samples(parts)
    return {
        "rank": np.full(len(samples["ts_ns"]), rank, dtype=np.int64),
        "ts_ns": samples["ts_ns"],
        "name": strings(samples["name"], words.names),
        "length": samples["value"].astype(np.int64),
        "capacity": Nullable(samples["capacity"], samples["capacity"] < 0),
    }
