"""Read what the recorder of a rank wrote to raw/: its journal, and its windows."""

from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.building import event_links
from strobe.ingest.formats import python_frames
from strobe.ingest.formats.event_files.facts import fact as value_columns
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import pipelines as mindspore_pipelines
from strobe.ingest.recording import (
    data_workers,
    journal_reader,
    mark_counters,
    metrics,
    option_filter,
    places,
    rank_state,
    trace_deletion,
    windows,
)
from strobe.ingest.recording import stack_samples as samples_of
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.steps import compiled_graphs, graph_ends, named_bounds
from strobe.ingest.steps import detection as steps_of
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace import spans as spans_of
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary
from strobe.ingest.trace.trace import Trace
from strobe.model.journal import Mark

_UNKNOWN = (
    "{} returns before its graph has ended, and the recorded operators could not be matched to its "
    "calls: forward, backward and update are unknown and count as rest. Read the loss in each "
    "step, for example with loss.asnumpy(), to record them"
)


def read(raw: Path, rank: int, started_unix_ns: int) -> Trace:
    """Never raises because of a file's content."""
    marks = journal_reader.read(raw)
    said = marks.problems
    for what in rank_state.words_left(raw, rank):
        said.add("recorder", what)
    trace = Trace(said=said)
    words = trace.words
    ts_ns = marks.to_run_time(marks.ts_ns, started_unix_ns)
    recorded = mark_counters.journal_spans(marks, ts_ns, words, said)
    traced = _windows(marks, raw, started_unix_ns, words, said)
    found = [window.spans for window in traced]
    ends = graph_ends.moved(marks, ts_ns, found)
    steps = _decide_steps(ends.marks, ends.ts_ns, said)
    _leave_to_journal(recorded, found)
    steps = compiled_graphs.divided(steps, ends.marks, ends.ts_ns, found, ends.unknown)
    for graph in sorted(ends.unknown):
        said.add("steps", _UNKNOWN.format(marks.text(graph, "a graph")))
    trace.steps = _moved_to_points(marks, steps, found, words, said)
    full = mark_counters.window_spans(
        ends.marks, ends.ts_ns, {window.number for window in traced}, words
    )
    evaluations = mark_counters.evaluation_spans(steps.evaluations, words)
    programs = mark_counters.program_spans(ends.marks, ends.ts_ns, words)
    trace.metrics = metrics.read(raw, marks, steps, started_unix_ns)
    trace.spans += [full, evaluations, programs, *recorded, *found]
    trace.memory = [part for window in traced for part in window.memory]
    trace.flows = [part for window in traced for part in window.flows]
    trace.counters += [
        mark_counters.counters(marks, ts_ns, words),
        *(part for window in traced for part in window.counters),
    ]
    trace.is_without_flops = option_filter.options(marks).get("with_flops") is False
    trace.queues = [
        mark_counters.queues(marks, ts_ns, words),
        *(part for window in traced for part in window.queues),
    ]
    pipelines = mindspore_pipelines.read(raw, marks, started_unix_ns, words, said)
    trace.queues += pipelines.queues
    trace.counters += pipelines.counters
    process = marks.last_fact("process") or {}
    at_work = data_workers.workers(raw, marks, said)
    looks = [
        samples_of.of_training(marks, ts_ns),
        *samples_of.beside_training(marks, ts_ns),
        *data_workers.looks(marks, at_work, started_unix_ns),
    ]
    for name, value in _metadata(marks).items():
        trace.metrics["lineage"].add_row(
            kind="custom", name=name, source="strobe.mindspore", **value_columns(value)
        )
    trace.further["batches"] = data_workers.batches(marks, at_work, rank, started_unix_ns)
    trace.further["places"] = places.columns(marks, rank)
    trace.further["samples"] = samples_of.columns(looks, rank, process)
    return trace


def _windows(
    marks: Journal, raw: Path, started_unix_ns: int, words: Vocabulary, said: Problems
) -> list[windows.Window]:
    files, gone = windows.files(raw), trace_deletion.deleted(raw)
    for number, fact in marks.windows().items():
        state = fact.get("state")
        if number in gone:
            said.add(f"window {number}", "its trace was deleted once it was read, as "
                     "data_simplification asks, and its tables are gone too")  # fmt: skip
        elif number not in files and state != "failed":
            said.add(f"window {number}", f"its trace is missing: it was last seen {state}")
    begun = set(marks.value[marks.code == Mark.WINDOW_BEGAN].tolist())
    for number in sorted(begun - set(files) - set(marks.windows())):
        said.add(f"window {number}", "lost: the process ended before its operators were written")
    return [
        windows.read(
            path, number, started_unix_ns, words, said, option_filter.of_window(marks, number)
        )
        for number, path in files.items()
    ]


def _metadata(marks: Journal) -> dict[str, Any]:
    """What the script noted about the run; the last value of a key counts."""
    found = (fact for fact in marks.facts if fact["type"] == "metadata")
    return {str(fact["key"]): fact["value"] for fact in found}


def _decide_steps(marks: Journal, ts_ns: Array, said: Problems) -> Steps:
    decided = steps_of.decide(
        steps_of.Marks(
            ts_ns=ts_ns, code=marks.code, ref=marks.ref, value=marks.value, thread=marks.thread
        )
    )
    for what in decided.problems:
        said.add("steps", what)
    return decided


def _moved_to_points(
    marks: Journal, steps: Steps, found: list[Spans], words: Vocabulary, said: Problems
) -> Steps:
    process = marks.last_fact("process") or {}
    forward, backward = process.get("fp_point"), process.get("bp_point")
    if not forward and not backward:
        return steps
    spans = spans_of.joined(found)
    links = event_links.links(spans, python_frames.parents(spans), words)
    return named_bounds.moved(
        steps, spans, links.scope, words, said, forward_point=forward, backward_point=backward
    )


def _leave_to_journal(recorded: list[Spans], traced: list[Spans]) -> None:
    """What the journal recorded throughout must not count twice inside a window."""
    known = {int(part.kind[0]) for part in recorded}
    for kind in known & {KIND["data"], KIND["gc"]}:
        for part in traced:
            part.kind = np.where(part.kind == kind, KIND["annotation"], part.kind)
