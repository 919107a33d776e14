"""The tables of one rank, from what was read of it."""

from typing import Any

import numpy as np

from strobe.ingest import allocations, arguments, link, nesting
from strobe.ingest import spans as spans_of
from strobe.ingest.classify import KIND, KIND_NAMES
from strobe.ingest.codes import Array, Codes, strings
from strobe.ingest.spans import STEPS_TRACK, Spans, Vocabulary
from strobe.ingest.steps import Steps
from strobe.ingest.trace import Samples, Trace, joined_samples, no_steps
from strobe.model.schema import PHASES, RANK_SHIFT


def tables(trace: Trace, rank: int) -> dict[str, dict[str, Any]]:
    """Every stored table, by name, as columns."""
    said, words = trace.said, trace.words
    steps = trace.steps or no_steps()
    spans = spans_of.joined([*_step_spans(steps, words), *trace.spans])
    parent = nesting.parents(spans.track, spans.ts_ns, spans.dur_ns)
    links = link.links(spans, parent, words)
    first_id = rank << RANK_SHIFT
    result = {
        "events": _events(spans, parent, links, steps, words, first_id),
        "tracks": _tracks(words, rank, first_id),
        "links": _links(links, spans, parent, first_id),
        "op_args": arguments.op_args(spans, parent, links.is_backward, words),
        "kernel_args": arguments.kernel_args(spans, words),
        "collective_args": arguments.collective_args(spans, words),
        "counters": _counters(trace.counters, words, rank),
        "queues": _queues(trace.queues, words, rank),
        "allocations": allocations.allocations(
            trace.memory, spans, parent, words=words, rank=rank, first_id=first_id, said=said
        ),
    }
    for name in ("op_args", "kernel_args", "collective_args"):
        result[name]["event_id"] = result[name]["event_id"] + first_id
    return {**result, "problems": said.columns(rank)}


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
    spans: Spans, parent: Array, links: link.Links, steps: Steps, words: Vocabulary, first_id: int
) -> dict[str, Any]:
    given = spans.arg("step")
    step = link.steps_of(spans.ts_ns, steps.step_ts_ns, steps.step_dur_ns)
    step = np.where(given > 0, given, step)
    return {
        "id": np.arange(len(spans), dtype=np.int64) + first_id,
        "track_id": spans.track.astype(np.int64) + first_id,
        "ts_ns": spans.ts_ns,
        "dur_ns": spans.dur_ns,
        "kind": strings(spans.kind, KIND_NAMES),
        "name": strings(spans.name, words.names),
        "step": np.ma.masked_array(step, mask=step <= 0),
        "parent_id": np.ma.masked_array(parent + first_id, mask=parent < 0),
        "launcher_id": np.ma.masked_array(links.launcher + first_id, mask=links.launcher < 0),
        "scope": strings(links.scope, words.scopes),
    }


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
    return np.ma.masked_array(known, mask=[value is None for value in values])


def _links(links: link.Links, spans: Spans, parent: Array, first_id: int) -> dict[str, Any]:
    forward, backward = link.forward_backward(links, spans, parent)
    return {
        "from_id": forward + first_id,
        "to_id": backward + first_id,
        "kind": strings(np.zeros(len(forward), dtype=np.int32), ["forward_backward"]),
    }


def _counters(parts: list[Samples], words: Vocabulary, rank: int) -> dict[str, Any]:
    samples = joined_samples(parts)
    return {
        "rank": np.full(len(samples["ts_ns"]), rank, dtype=np.int64),
        "ts_ns": samples["ts_ns"],
        "name": strings(samples["name"], words.names),
        "value": samples["value"].astype(np.float64),
    }


def _queues(parts: list[Samples], words: Vocabulary, rank: int) -> dict[str, Any]:
    samples = joined_samples(parts)
    return {
        "rank": np.full(len(samples["ts_ns"]), rank, dtype=np.int64),
        "ts_ns": samples["ts_ns"],
        "name": strings(samples["name"], words.names),
        "length": samples["value"].astype(np.int64),
        "capacity": np.ma.masked_array(samples["capacity"], mask=samples["capacity"] < 0),
    }
