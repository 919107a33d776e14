"""Steps from executions: when the program that trains ran, on the device or on the host's threads.

What the host says (StepTraceAnnotation) is when a step was sent off, which may be long before it
ran; it is used to know how many runs make a step, and where nothing else tells.

- A run of a program is an event of the line "XLA Modules", or all operations with one run id, or,
  where there is neither, what lies between two occurrences of the program's first operation.
- The program that trains is the one with a backward pass; of several, or without any, the one that
  ran longest. Its runs on the device where it ran most often are the steps.
- A step ends with its last run and begins where the step before it ended: what lies between two
  runs is its gap. Inside a run, phases change with the operation that begins.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.xplane.events import Events
from strobe.ingest.formats.xplane.judge import NO_PROGRAM, Judged
from strobe.ingest.formats.xplane.names import (
    BACKWARD,
    FORWARD,
    MODULES_LINE,
    OTHER,
    STEPS_LINE,
    UNNAMED,
    Place,
)
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.codes import Array, Codes, in_order_once
from strobe.ingest.trace.spans import Spans
from strobe.model.schema import PHASES

_LABELS = {UNNAMED: 0, OTHER: 1, FORWARD: 2, BACKWARD: 3}
_COLLECTIVE = 4
_PHASE = {name: number for number, name in enumerate(PHASES)}
_NO_RUN = -1


class Ops(NamedTuple):
    """Operations of programs."""

    ts_ns: Array
    end_ns: Array
    label: Array
    program: Array
    device: Array
    run: Array
    name: Array


class Runs(NamedTuple):
    """Executions of programs, or anything else that steps may be."""

    ts_ns: Array
    end_ns: Array
    program: Array
    device: Array


@dataclass
class Executions:
    """Grows with the blocks of events that are read."""

    devices: Codes[str] = field(default_factory=Codes)
    ops: list[Ops] = field(default_factory=list)
    modules: list[Runs] = field(default_factory=list)
    step_line: list[Runs] = field(default_factory=list)
    annotations: list[Runs] = field(default_factory=list)

    def take(
        self, place: Place, spans: Spans, judged: list[Judged], codes: Array, events: Events,
        rows: Array,
    ) -> None:  # fmt: skip
        """Spans of one block, with what each was judged to be."""
        device = np.full(len(spans), self.devices[place.device], dtype=np.int32)
        end_ns = spans.ts_ns + spans.dur_ns
        lines = {MODULES_LINE: self.modules, STEPS_LINE: self.step_line}
        if not place.is_host and place.line in lines:
            lines[place.line].append(Runs(spans.ts_ns, end_ns, spans.name, device))
            return
        if place.is_host and "step_num" in events.stats:
            mine = np.flatnonzero(events.stats["step_num"][rows] >= 0)
            found = Runs(spans.ts_ns, end_ns, spans.name, device)
            self.annotations.append(Runs(*(column[mine] for column in found)))
        program = np.array([j.program for j in judged], dtype=np.int32)[codes]
        mine = np.flatnonzero(program >= 0)
        if len(mine):
            label = np.array([_LABELS[j.direction] for j in judged], dtype=np.int8)[codes]
            label[spans.kind == KIND["collective"]] = _COLLECTIVE
            run = events.stat("run_id")[rows]
            found_ops = Ops(spans.ts_ns, end_ns, label, program, device, run, spans.name)
            self.ops.append(Ops(*(column[mine] for column in found_ops)))

    def steps(self) -> Steps | None:
        ops = Ops(*_joined(self.ops, len(Ops._fields)))
        annotations = Runs(*_joined(self.annotations, len(Runs._fields)))
        order = np.argsort(ops.ts_ns, kind="stable")
        ops = Ops(*(column[order] for column in ops))
        runs = Runs(*_joined(self.modules, len(Runs._fields)))
        if not len(runs.ts_ns):
            runs = _runs(ops)
        chosen = _training(runs, ops)
        if not len(chosen.ts_ns):
            chosen = Runs(*_joined(self.step_line, len(Runs._fields)))
            chosen = _on_one_device(chosen)
        problems = []
        if not len(chosen.ts_ns) and len(annotations.ts_ns):
            chosen = annotations
            problems.append(
                "no execution of a program is in it: steps are those that the host announced,"
                " which is when they were sent off and not when they ran"
            )
        chosen = _in_order(chosen)
        return _steps(chosen, ops, annotations, problems) if len(chosen.ts_ns) else None


def _joined(parts: "list[Ops] | list[Runs]", width: int) -> list[Array]:
    if not parts:
        return [np.zeros(0, dtype=np.int64) for _ in range(width)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _runs(ops: Ops) -> Runs:
    """Runs of all programs, from their operations in order of time."""
    named = ops.program != NO_PROGRAM
    ops = Ops(*(column[named] for column in ops))
    run = ops.run.copy()
    if not len(run):
        return Runs(*_joined([], len(Runs._fields)))
    place = ops.device.astype(np.int64) * (int(ops.program.max()) + 1) + ops.program
    unnumbered = np.flatnonzero(run == _NO_RUN)
    order = unnumbered[np.argsort(place[unnumbered], kind="stable")]
    for mine in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        if len(mine):
            run[mine] = _counted_runs(ops.name[mine])
    _, number = np.unique(run, return_inverse=True)
    key = place * (int(number.max()) + 1) + number
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    return Runs(
        np.minimum.reduceat(ops.ts_ns[order], first), np.maximum.reduceat(ops.end_ns[order], first),
        ops.program[order[first]], ops.device[order[first]],
    )  # fmt: skip


def _counted_runs(names: Array) -> Array:
    """Without numbers, a run begins where the first operation comes again.

    In a loop it would come many times a run: then the first of the rarest operations tells.
    """
    distinct, first, count = np.unique(names, return_index=True, return_counts=True)
    marker = distinct[first.argmin()]
    if count[first.argmin()] >= 2 * count.min():
        marker = names[first[count == count.min()].min()]
    counted: Array = np.maximum(np.cumsum(names == marker) - 1, 0)
    return counted


def _training(runs: Runs, ops: Ops) -> Runs:
    """The runs of the program that trains, on the device that ran it most often."""
    best: tuple[bool, int] | None = None
    chosen = np.zeros(0, dtype=np.int64)
    backward = ops.ts_ns[ops.label == _LABELS[BACKWARD]]
    for program in in_order_once(runs.program).tolist():
        mine = np.flatnonzero(runs.program == program)
        place = np.searchsorted(backward, runs.ts_ns[mine])
        has_backward = bool((np.append(backward, 2**62)[place] < runs.end_ns[mine]).any())
        score = has_backward, int((runs.end_ns[mine] - runs.ts_ns[mine]).sum())
        if best is None or score > best:
            best, chosen = score, mine
    return _on_one_device(Runs(*(column[chosen] for column in runs)))


def _on_one_device(runs: Runs) -> Runs:
    if not len(runs.ts_ns):
        return runs
    device = int(np.bincount(runs.device).argmax())
    return Runs(*(column[runs.device == device] for column in runs))


def _in_order(runs: Runs) -> Runs:
    """By time, and none before the one before it has ended."""
    order = np.lexsort((runs.end_ns, runs.ts_ns))
    runs = Runs(*(column[order] for column in runs))
    before = np.maximum.accumulate(np.append(runs.ts_ns[:1], runs.end_ns))[:-1]
    keep = runs.end_ns > before[: len(runs.end_ns)]
    start = np.maximum(runs.ts_ns, before[: len(runs.ts_ns)])
    return Runs(*(column[keep] for column in runs._replace(ts_ns=start)))


def _steps(runs: Runs, ops: Ops, annotations: Runs, problems: list[str]) -> Steps:
    announced = np.sort(annotations.ts_ns)
    each = 1
    if len(announced) > 1 and len(runs.ts_ns) % len(announced) == 0:
        each = len(runs.ts_ns) // len(announced)
    before = announced[announced <= runs.ts_ns[0]]
    begin = int(before[-1]) if len(before) else int(runs.ts_ns[0])
    ends = runs.end_ns[each - 1 :: each]
    step_ts = np.append(begin, ends[:-1])
    points, phase = _changes(runs, ops, begin)
    keep = np.append(True, phase[1:] != phase[:-1]) | np.isin(points, step_ts)
    points, phase = points[keep], phase[keep]
    return Steps(
        step_ts, ends - step_ts, np.searchsorted(step_ts, points, side="right"), phase, points,
        np.diff(np.append(points, ends[-1])), problems,
    )  # fmt: skip


def _changes(runs: Runs, ops: Ops, begin: int) -> tuple[Array, Array]:
    """Moments from which on another phase holds."""
    inside = np.searchsorted(runs.ts_ns, ops.ts_ns, side="right") - 1
    mine = (inside >= 0) & (ops.device == runs.device[0])
    mine &= ops.ts_ns < runs.end_ns[np.maximum(inside, 0)]
    ops, inside = Ops(*(column[mine] for column in ops)), inside[mine]
    phase = _phases(ops, inside, len(runs.ts_ns))
    # A collective shows only where no computation hides it.
    is_computation = ops.label != _COLLECTIVE
    busy_until = np.maximum.accumulate(np.where(is_computation, ops.end_ns, 0))
    start = np.where(is_computation, ops.ts_ns, np.maximum(ops.ts_ns, busy_until))
    known = (phase >= 0) & (start < runs.end_ns[inside])
    start, phase, inside = start[known], phase[known], inside[known]
    opening = np.full(len(runs.ts_ns), _PHASE["rest"])
    opening[inside[::-1]] = phase[::-1]  # the first of each run is written last
    gap = np.full(len(runs.ts_ns), _PHASE["gap"])
    time = np.concatenate([[begin], runs.end_ns[:-1], runs.ts_ns, start])
    what = np.concatenate([gap, opening, phase])
    order = np.argsort(time, kind="stable")
    time, what = time[order], what[order]
    last = np.append(time[1:] != time[:-1], True)  # of several at one moment
    return time[last], what[last].astype(np.int64)


def _phases(ops: Ops, inside: Array, count: int) -> Array:
    """The phase each operation stands for; -1 for those that belong to what is around them."""
    first_backward = np.full(count, 2**62)
    backward = ops.label == _LABELS[BACKWARD]
    np.minimum.at(first_backward, inside[backward], ops.ts_ns[backward])
    differentiates = bool(np.isin(ops.label, (_LABELS[FORWARD], _LABELS[BACKWARD])).any())
    if not differentiates:
        return np.where(ops.label == _COLLECTIVE, _PHASE["all_reduce"], _PHASE["rest"])
    table = np.array(
        [-1, _PHASE["forward"], _PHASE["forward"], _PHASE["backward"], _PHASE["all_reduce"]]
    )
    is_update = (ops.label == _LABELS[OTHER]) & (ops.ts_ns >= first_backward[inside])
    return np.where(is_update, _PHASE["update"], table[ops.label])
