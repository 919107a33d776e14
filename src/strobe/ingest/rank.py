"""The tables of one rank, from what its recorder left in raw/."""

from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest import (
    allocations,
    arguments,
    counters,
    journal,
    link,
    nesting,
    points,
    rank_state,
    windows,
)
from strobe.ingest import spans as spans_of
from strobe.ingest.classify import KIND, KIND_NAMES
from strobe.ingest.codes import Array, Codes, strings
from strobe.ingest.journal import Journal
from strobe.ingest.problems import Problems
from strobe.ingest.spans import STEPS_TRACK, Spans, Vocabulary
from strobe.model.journal import Mark
from strobe.model.schema import PHASES, RANK_SHIFT, STORED_TABLES
from strobe.store import columns

# Neighbours in time lie together in the file, so that a stretch of time is a few row groups.
_ORDER = {"events": "id", "op_args": "event_id", "allocations": "ts_ns", "counters": "name, ts_ns"}
_BY_NAME = {table.name: table for table in STORED_TABLES}


def build_rank(raw: Path, rank: int, started_unix_ns: int, target: Path) -> None:
    """Write every stored table of a rank into an existing directory."""
    marks = journal.read(raw)
    for what in rank_state.words_left(raw, rank):
        marks.problems.add("recorder", what)
    for name, table in tables(marks, raw, rank, started_unix_ns).items():
        columns.write(_BY_NAME[name], table, target / f"{name}.parquet", _ORDER.get(name, ""))


def write_failure(target: Path, rank: int, what: str) -> None:
    """The tables of a rank that could not be built: one row that says so."""
    said = Problems()
    said.add("ingest", what)
    columns.write(_BY_NAME["problems"], said.columns(rank), target / "problems.parquet")


def tables(marks: Journal, raw: Path, rank: int, started_unix_ns: int) -> dict[str, dict[str, Any]]:
    said, words = marks.problems, Vocabulary()
    ts_ns = marks.to_run_time(marks.ts_ns, started_unix_ns)
    recorded = counters.journal_spans(marks, ts_ns, words, said)
    traced = _windows(marks, raw, started_unix_ns, words, said)
    steps = _decide_steps(marks, ts_ns, said)
    found = [window.spans for window in traced]
    _leave_to_journal(recorded, found)
    steps = _moved_to_points(marks, steps, found, words, said)
    full = counters.window_spans(marks, ts_ns, {window.number for window in traced}, words)
    spans = spans_of.joined([*_step_spans(steps, words), full, *recorded, *found])
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
        "counters": counters.counters(marks, ts_ns, rank),
        "queues": counters.queues(marks, ts_ns, rank),
        "allocations": allocations.allocations(
            [window.memory for window in traced], spans, parent,
            rank=rank, first_id=first_id, said=said,
        ),
    }  # fmt: skip
    for name in ("op_args", "kernel_args", "collective_args"):
        result[name]["event_id"] = result[name]["event_id"] + first_id
    return {**result, "problems": said.columns(rank)}


def _windows(
    marks: Journal, raw: Path, started_unix_ns: int, words: Vocabulary, said: Problems
) -> list[windows.Window]:
    files = windows.files(raw)
    for number, fact in marks.windows().items():
        state = fact.get("state")
        if number not in files and state != "failed":
            said.add(f"window {number}", f"its trace is missing: it was last seen {state}")
    begun = set(marks.value[marks.code == Mark.WINDOW_BEGAN].tolist())
    for number in sorted(begun - set(files) - set(marks.windows())):
        said.add(f"window {number}", "lost: the process ended before its operators were written")
    return [
        windows.read(path, number, started_unix_ns, words, said) for number, path in files.items()
    ]


def _decide_steps(marks: Journal, ts_ns: Array, said: Problems) -> Any:
    from strobe.ingest import steps

    decided = steps.decide(
        steps.Marks(
            ts_ns=ts_ns, code=marks.code, ref=marks.ref, value=marks.value, thread=marks.thread
        )
    )
    for what in decided.problems:
        said.add("steps", what)
    return decided


def _moved_to_points(
    marks: Journal, steps: Any, found: list[Spans], words: Vocabulary, said: Problems
) -> Any:
    process = marks.last_fact("process") or {}
    forward, backward = process.get("fp_point"), process.get("bp_point")
    if not forward and not backward:
        return steps
    spans = spans_of.joined(found)
    links = link.links(spans, nesting.parents(spans.track, spans.ts_ns, spans.dur_ns), words)
    return points.moved(
        steps, spans, links.scope, words, said, forward_point=forward, backward_point=backward
    )


def _step_spans(steps: Any, words: Vocabulary) -> list[Spans]:
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


def _leave_to_journal(recorded: list[Spans], traced: list[Spans]) -> None:
    """What the journal recorded throughout must not count twice inside a window."""
    known = {int(part.kind[0]) for part in recorded}
    for kind in known & {KIND["data"], KIND["gc"]}:
        for part in traced:
            part.kind = np.where(part.kind == kind, KIND["annotation"], part.kind)


def _events(
    spans: Spans, parent: Array, links: link.Links, steps: Any, words: Vocabulary, first_id: int
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
