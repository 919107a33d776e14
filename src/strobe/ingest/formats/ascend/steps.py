"""The steps of an NPU's training, and step_trace_time.csv.

A step begins where the framework marked it (ProfilerStep#13), or else as long before its first work
on the device as `Preparing` says; it ends with its last work, on the host or on the device,
whichever is later. So the phases are those of the device: what it did, not when it was told to.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.ascend import csv_table as ascend_csv
from strobe.ingest.formats.ascend.numbers import lengths
from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore import phases as mindspore_phases
from strobe.ingest.formats.mindspore.names import BACKWARD, FORWARD, UPDATE
from strobe.ingest.formats.mindspore.phases import PARTS, Border, Stretch, Work
from strobe.ingest.steps.detection import Steps
from strobe.ingest.steps.phases import GAP, REST
from strobe.ingest.trace.codes import Array, in_order_once
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary

_NAMES: ascend_csv.Names = {
    "step": ("Step",), "stage": ("Stage",), "preparing": ("Preparing",),
    "overlapped": ("Overlapped",),
}  # fmt: skip
_FILE = "step_trace_time.csv"
_BACKWARD_NAME = "autograd::engine::evaluate_function"
_MARK = re.compile(r"ProfilerStep#(\d{1,15})$")
_UPDATE = re.compile(r"Optimizer\.step#")
_NUMBER = re.compile(r"(\d{1,15})$")


class Told(NamedTuple):
    """A line of step_trace_time.csv; -1 where a cell is empty."""

    stage_ns: int
    preparing_ns: int
    overlapped_ns: int


class Device(NamedTuple):
    """What a device did in a step: from when to when."""

    first_ns: int
    last_ns: int


def read(path: Path, said: Problems) -> dict[int, Told]:
    """By the number of the step, as the recorder counts."""
    found: dict[int, Told] = {}
    for part in ascend_csv.parts(path, _NAMES, ("step",), said):
        columns = [lengths(part.text(n)).tolist() for n in ("stage", "preparing", "overlapped")]
        for text, *told in zip(part.text("step"), *columns, strict=True):
            number = step_number(text)
            if number >= 0:
                found[number] = Told(*told)
    return found


def step_number(text: str) -> int:
    """13 of `13` and of `step13`; -1 where there is none."""
    found = _NUMBER.search(text.strip())
    return int(found.group(1)) if found else -1


def steps(
    spans: Spans, number: Array, told: dict[int, Told], started_ns: int | None,
    words: Vocabulary, said: Problems,
) -> Steps | None:  # fmt: skip
    """`number`: of the step that each span belongs to, as the recorder counts; -1 if unknown.

    `started_ns` is when the recording began, if that is known.
    """
    marked = _marked(spans, words)
    work, which = _work(spans, number, marked, words)
    device = _devices(work, which)
    missing = len(told.keys() - {*marked, *device})
    said.add(_FILE, "a step has no event that says when it was: left out", missing)
    if not marked and not device:
        return None
    if (~work.is_collective).any():
        extents = {n: _before(device[n], told.get(n)) for n in device}
        return mindspore_phases.steps([*_bounds(marked, extents).values()], work)
    extents = {n: _guessed(device[n], told.get(n), started_ns) for n in device}
    said.add(_FILE, "no kernel says when a step was: it was laid around its collectives",
             len(extents.keys() - marked.keys()))  # fmt: skip
    return _without_kernels(_bounds(marked, extents), told, work, said)


def _marked(spans: Spans, words: Vocabulary) -> dict[int, Stretch]:
    names = {code: m for name, code in words.names.items() if (m := _MARK.match(name))}
    rows = np.flatnonzero(np.isin(spans.name, list(names)) & (spans.arg("on_device") < 0))
    return {
        int(names[int(spans.name[row])].group(1)): (
            int(spans.ts_ns[row]), int(spans.ts_ns[row] + spans.dur_ns[row])
        )
        for row in rows.tolist()
    }  # fmt: skip


def _work(
    spans: Spans, number: Array, marked: dict[int, Stretch], words: Vocabulary
) -> tuple[Work, Array]:
    """What the device computed and communicated, and the step of each."""
    on_device = spans.arg("on_device") > 0
    collective = (spans.kind == KIND["collective"]) & on_device
    rows = np.flatnonzero(collective | ((spans.kind == KIND["kernel"]) & on_device))
    part = _parts(spans, words)[rows]
    which = number[rows]
    if (which < 0).any() and marked:
        which = np.where(which >= 0, which, _step_at(_launched_at(spans, rows), marked))
    end_ns = spans.ts_ns[rows] + spans.dur_ns[rows]
    return Work(spans.ts_ns[rows], end_ns, part, collective[rows]), which


def _launched_at(spans: Spans, rows: Array) -> Array:
    """When the operator behind each began, if that is known, else when it began itself."""
    cause = spans.arg("external")[rows] - 1
    return np.where(cause >= 0, spans.ts_ns[np.maximum(cause, 0)], spans.ts_ns[rows])


def _step_at(ts_ns: Array, marked: dict[int, Stretch]) -> Array:
    numbers = sorted(marked, key=lambda step: marked[step])
    begins = np.array([marked[step][0] for step in numbers])
    place = np.searchsorted(begins, ts_ns, side="right") - 1
    return np.where(place >= 0, np.array(numbers)[np.maximum(place, 0)], -1)


def _parts(spans: Spans, words: Vocabulary) -> Array:
    """The part of the training each span belongs to: its own word, or that of its operator."""
    names = list(words.names)
    starts = {
        UPDATE: np.array([bool(_UPDATE.match(n)) for n in names] or [False])[spans.name],
        BACKWARD: np.array([n.startswith(_BACKWARD_NAME) for n in names] or [False])[spans.name]
        | ((spans.arg("sequence") >= 0) & (spans.arg("forward_thread") > 0)),
    }
    cause = spans.arg("external") - 1
    causes = in_order_once(cause[cause >= 0])
    of_cause = np.full(len(spans) + 1, 0, dtype=np.int64)
    of_cause[causes] = PARTS.index(FORWARD)
    for part, roots in starts.items():
        inside = _inside(spans, np.flatnonzero(roots), causes)
        if part == BACKWARD:
            inside |= _on_own_thread(spans, roots, causes, names)
        of_cause[causes[inside]] = PARTS.index(part)
    result = np.where(cause >= 0, of_cause[np.maximum(cause, 0)], 0)
    own = spans.arg("part")
    return np.where(own > 0, own, result)


def _on_own_thread(spans: Spans, roots: Array, rows: Array, names: list[str]) -> Array:
    """Whether each row is on a thread that backward has for itself: it copies buckets there."""
    marks = np.array([bool(_MARK.match(n) or _UPDATE.match(n)) for n in names] or [False])
    own = np.setdiff1d(spans.track[roots], spans.track[marks[spans.name]])
    found: Array = np.isin(spans.track[rows], own)
    return found


def _inside(spans: Spans, roots: Array, rows: Array) -> Array:
    """Whether each row begins inside one of the roots on its own track."""
    result = np.zeros(len(rows), dtype=np.bool_)
    for track in in_order_once(spans.track[roots]).tolist():
        mine = roots[spans.track[roots] == track]
        mine = mine[np.argsort(spans.ts_ns[mine], kind="stable")]
        ends = np.maximum.accumulate(spans.ts_ns[mine] + spans.dur_ns[mine])
        at = np.flatnonzero(spans.track[rows] == track)
        place = np.searchsorted(spans.ts_ns[mine], spans.ts_ns[rows[at]], side="right") - 1
        result[at] = (place >= 0) & (ends[np.maximum(place, 0)] > spans.ts_ns[rows[at]])
    return result


def _devices(work: Work, which: Array) -> dict[int, Device]:
    found = {}
    for number in in_order_once(which[which >= 0]).tolist():
        rows = which == number
        found[number] = Device(int(work.ts_ns[rows].min()), int(work.end_ns[rows].max()))
    return found


def _before(device: Device, told: Told | None) -> Stretch:
    return device.first_ns - max(0, told.preparing_ns if told else 0), device.last_ns


def _guessed(device: Device, told: Told | None, started_ns: int | None) -> Stretch:
    """As long as is told, ending with the last collective if that does not begin it too early."""
    if told is None or told.stage_ns <= 0:
        return device.first_ns, device.last_ns
    preparing = max(0, told.preparing_ns)
    begin = min(device.first_ns, device.last_ns - told.stage_ns) - preparing
    if started_ns is not None:
        begin = min(max(begin, started_ns), device.first_ns)
    return begin, max(device.last_ns, begin + preparing + told.stage_ns)


def _without_kernels(
    bounds: dict[int, Stretch], told: dict[int, Told], work: Work, said: Problems
) -> Steps:
    borders = []
    for number, (begin, _) in bounds.items():
        preparing = max(0, told[number].preparing_ns) if number in told else 0
        borders.append([Border(begin, GAP), Border(begin + preparing, REST)])
    alone = mindspore_phases.exposed(work)
    if any(line.overlapped_ns > 0 for line in told.values()):
        said.add(_FILE, "kernels are unknown, so which communication they hid is, too: it is in"
                 " the rest of the step")  # fmt: skip
        alone = (alone[0][:0], alone[1][:0])
    return mindspore_phases.tiled([*bounds.values()], borders, alone)


def _bounds(marked: dict[int, Stretch], extents: dict[int, Stretch]) -> dict[int, Stretch]:
    """A step that follows the one before begins where that ended."""
    found: dict[int, Stretch] = {}
    last_number, last_end = -1, None
    for number in sorted({*marked, *extents}):
        known = [of[number] for of in (marked, extents) if number in of]
        begin, end = known[0][0], max(stretch[1] for stretch in known)
        if last_end is not None and (begin < last_end or number == last_number + 1):
            begin = last_end
        found[number] = (begin, max(begin, end))
        last_number, last_end = number, found[number][1]
    return found
