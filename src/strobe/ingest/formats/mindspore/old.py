"""The folder that MindSpore 0.x to 2.4 left of an Ascend device, and MindInsight read.

- step_trace_raw_1_detail_time.csv: for each step where it began, where forward began (fp_point),
  backward ended (bp_point) and the step ended, and the collectives; in units of 10 ns.
- output_timeline_data_1.txt: every computation, with its stream.
- hccl_raw_1.csv: what communication cost in each step.

The clock is that of the device. Where forward meets backward is told by no file: by names of
computations, if those of every step were recorded; else both are `rest`.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats.ascend import csv_table as ascend_csv
from strobe.ingest.formats.ascend.numbers import NEVER, integers, lengths, moments, numbers
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import phases as mindspore_phases
from strobe.ingest.formats.mindspore.names import BACKWARD, meaning
from strobe.ingest.formats.mindspore.phases import PARTS, Border, Work
from strobe.ingest.steps.detection import Steps
from strobe.ingest.steps.phases import BACKWARD as BACKWARD_PHASE
from strobe.ingest.steps.phases import FORWARD as FORWARD_PHASE
from strobe.ingest.steps.phases import GAP, REST, UPDATE
from strobe.ingest.trace.codes import Array, Codes
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Track, Vocabulary
from strobe.ingest.trace.trace import Samples

_TICK_NS = 10
_POINTS = ("start_point", "end_point", "fp_point", "bp_point")
_COLLECTIVE = re.compile(r"stream_(\d+)_(?:\d+_)?(.+?)(?:_\d+)?_start_point$")
_TIMELINE: ascend_csv.Names = {
    "name": ("op_name", "kernel_name"), "stream": ("stream_id",), "ts_ns": ("start_time",),
    "dur_ns": ("duration",),
}  # fmt: skip
_COST: ascend_csv.Names = {
    "step": ("step_num",), "communication": ("communication_cost",), "wait": ("wait_cost",),
    "links": ("link_info",),
}  # fmt: skip
_BYTES_PER_KB = 1000


class Collectives(NamedTuple):
    name: str
    stream: int
    ts_ns: Array
    end_ns: Array


@dataclass
class StepTrace:
    """Moments of the points of each step, in nanoseconds of the device's clock."""

    step: Array
    points: dict[str, Array]
    collectives: list[Collectives]


def read_steps(path: Path, said: Problems) -> StepTrace:
    names: ascend_csv.Names = {"step": ("step_num",), **{point: (point,) for point in _POINTS}}
    header = ascend_csv.header(path)
    starts = {cell: m for cell in header if (m := _COLLECTIVE.match(cell.strip()))}
    names |= {cell: (cell,) for cell in header}
    parts = []
    for part in ascend_csv.parts(path, names, ("step", *_POINTS), said):
        columns = {name: integers(part.text(name)) * _TICK_NS for name in part.columns}
        columns["step"] = integers(part.text("step"))
        parts.append(columns)
    columns = ascend_csv.joined(parts, parts[0] if parts else names)
    # The last line is the average, and its step a dash.
    whole = (columns["step"] > 0) & np.all([columns[p] >= 0 for p in _POINTS], axis=0)
    said.add(path.name, "a step is not told whole and was left out",
             int((~whole & (columns["step"] > 0)).sum()))  # fmt: skip
    rows = np.flatnonzero(whole)[np.argsort(columns["start_point"][whole], kind="stable")]
    found = []
    for cell, match in starts.items():
        end = cell.replace("_start_point", "_end_point")
        if end in columns:
            begin_ns, end_ns = columns[cell][rows], columns[end][rows]
            known = (begin_ns > 0) & (end_ns >= begin_ns)
            kind = meaning(match.group(2)).type
            name = "AllReduce" if kind == "parallel" else kind
            found.append(Collectives(name, int(match.group(1)[:9]), begin_ns[known], end_ns[known]))
    return StepTrace(columns["step"][rows], {p: columns[p][rows] for p in _POINTS}, found)


def read_timeline(
    path: Path, device: str, number: int, words: Vocabulary, said: Problems
) -> tuple[Spans, Array]:
    """Computations as spans, and the part of the training each belongs to."""
    names = Codes[str]()
    parts = []
    for part in ascend_csv.parts(path, _TIMELINE, ("name", "ts_ns", "dur_ns"), said):
        columns = {
            "ts_ns": moments(part.text("ts_ns"), part.unit("ts_ns")),
            "dur_ns": lengths(part.text("dur_ns"), part.unit("dur_ns")),
            "stream": integers([cell.strip() for cell in part.text("stream")]),
            "name": names.of(part.text("name"), part.count).astype(np.int64),
        }
        known = (columns["ts_ns"] != NEVER) & (columns["dur_ns"] >= 0)
        said.add(path.name, "a line has no time or length and was left out", int((~known).sum()))
        parts.append({name: column[known] for name, column in columns.items()})
    found = ascend_csv.joined(parts, _TIMELINE)
    told = [meaning(name) for name in names]
    part_of = np.array([PARTS.index(m.part) for m in told] or [0])[found["name"]]
    return _spans(found, told, device, number, words), part_of


def collective_spans(trace: StepTrace, device: str, number: int, words: Vocabulary) -> list[Spans]:
    found = []
    for told in trace.collectives:
        columns = {
            "ts_ns": told.ts_ns, "dur_ns": told.end_ns - told.ts_ns,
            "stream": np.full(len(told.ts_ns), told.stream),
            "name": np.zeros(len(told.ts_ns), dtype=np.int64),
        }  # fmt: skip
        one = _spans(columns, [meaning(told.name)], device, number, words)
        one.kind[:] = KIND["collective"]
        found.append(one)
    return found


def steps(trace: StepTrace, kernels: Spans | None, part: Array | None, said: Problems) -> Steps:
    """gap up to fp_point and update from bp_point, as MindInsight has them, under all_reduce."""
    points = trace.points
    bounds = list(zip(points["start_point"].tolist(), points["end_point"].tolist(), strict=True))
    split = _splits(trace, kernels, part)
    if split is None:
        said.add("step trace", "where forward ends and backward begins is not told for every step:"
                 " both are in the rest of the step")  # fmt: skip
    borders = []
    for row, (begin, _) in enumerate(bounds):
        first, last = int(points["fp_point"][row]), int(points["bp_point"][row])
        inner = [Border(first, REST)]
        if split is not None:
            inner = [Border(first, FORWARD_PHASE), Border(int(split[row]), BACKWARD_PHASE)]
        borders.append([Border(begin, GAP), *inner, Border(last, UPDATE)])
    return mindspore_phases.tiled(bounds, borders, _after_backward(trace))


def costs(path: Path, trace: StepTrace, words: Vocabulary, said: Problems) -> list[Samples]:
    """hccl_raw: communication, waits, and what links carried, at the beginning of each step."""
    begins = dict(zip(trace.step.tolist(), trace.points["start_point"].tolist(), strict=True))
    rows: list[tuple[int, int, float]] = []
    for part in ascend_csv.parts(path, _COST, ("step",), said):
        columns = {name: numbers(part.text(name)) for name in ("communication", "wait")}
        for row, step in enumerate(integers(part.text("step")).tolist()):
            if step in begins:
                told = [(f"{n} cost (ms)", float(c[row])) for n, c in columns.items()]
                told += _links(part.text("links")[row])
                rows += [(begins[step], words.names[n], v) for n, v in told if np.isfinite(v)]
            elif step >= 0:
                said.add(path.name, "no step trace says when a step was: its costs were left out")
    when, name, value = zip(*rows, strict=True) if rows else ((), (), ())
    return [Samples(np.array(when, dtype=np.int64), np.array(name, dtype=np.int32),
                    np.array(value, dtype=np.float64))]  # fmt: skip


def _links(text: str) -> list[tuple[str, float]]:
    """{"1-0": {"SDMA": [milliseconds, kilobytes, ...]}}"""
    try:
        whole: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return []
    return [
        (f"link {pair} {kind} (bytes)", float(told[1]) * _BYTES_PER_KB)
        for pair, kinds in (whole.items() if isinstance(whole, dict) else ())
        for kind, told in (kinds.items() if isinstance(kinds, dict) else ())
        if isinstance(told, list) and len(told) > 1 and type(told[1]) in (int, float)
    ]


def _spans(
    columns: dict[str, Array], told: list[Any], device: str, number: int, words: Vocabulary
) -> Spans:
    streams, back = np.unique(columns["stream"], return_inverse=True)
    tracks = []
    for stream in streams.tolist():
        track = Track(device, None, stream)
        words.track_names.setdefault(track, f"stream {stream}")
        tracks.append(words.tracks[track])
    name, count = columns["name"].astype(np.int64), len(columns["name"])
    kinds = [KIND["collective" if m.is_collective else "kernel"] for m in told]
    table = {
        "name": [words.names[m.type] for m in told],
        "scope": [words.scopes[m.scope] if m.scope else -1 for m in told],
        "backward": [int(m.part == BACKWARD) for m in told],
        "kind": kinds,
    }
    looked_up = {
        key: np.array([*values, -1], dtype=np.int32)[name] for key, values in table.items()
    }
    return Spans(
        columns["ts_ns"], columns["dur_ns"], looked_up["kind"], looked_up["name"],
        np.array([*tracks, -1], dtype=np.int32)[back],
        {
            "window": np.full(count, number, dtype=np.int64),
            "on_device": np.ones(count, dtype=np.int64), "stream": columns["stream"],
            "scope": looked_up["scope"], "backward": looked_up["backward"],
        },
    )  # fmt: skip


def _splits(trace: StepTrace, kernels: Spans | None, part: Array | None) -> Array | None:
    """The start of the first computation of backward in each step; None if one step has none."""
    if kernels is None or part is None or not len(trace.step):
        return None
    starts = np.sort(kernels.ts_ns[part == PARTS.index(BACKWARD)])
    place = np.searchsorted(starts, trace.points["fp_point"], side="left")
    if not len(starts) or (place >= len(starts)).any():
        return None
    found: Array = starts[place]
    return found if (found < trace.points["bp_point"]).all() else None


def _after_backward(trace: StepTrace) -> tuple[Array, Array]:
    """Communication between the end of backward and the end of its step, which nothing hides."""
    begins, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    last, over = trace.points["bp_point"], trace.points["end_point"]
    for told in trace.collectives:
        row = np.searchsorted(trace.points["start_point"], told.ts_ns, side="right") - 1
        row = np.maximum(row, 0)
        first = np.maximum(told.ts_ns, last[row]) if len(last) else told.ts_ns
        stop = np.minimum(told.end_ns, over[row]) if len(last) else told.end_ns
        begins.append(first[stop > first])
        ends.append(stop[stop > first])
    begin, end = np.concatenate(begins), np.concatenate(ends)
    return mindspore_phases.exposed(
        Work(begin, end, np.zeros(len(begin), dtype=np.int64), np.ones(len(begin), dtype=np.bool_))
    )
