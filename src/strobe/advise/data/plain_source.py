"""Data that the training loop prepares itself, without a data loader: in a generator or function.

This happens in the gap before the forward pass, where a loop may also write logs. The line of the
loop distinguishes them: code before the call of the model prepares its input, code after the update
does not. The loop must also call an iterator or a function of the user's own there, because a line
of the loop by itself may do anything. A model's forward that is called as a plain method or
function also runs before the recorded forward pass. It is recognized by its name, and by operators
that gradients flow through.
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from strobe.advise.evidence.stack_lines import (
    CAUGHT_NS,
    LATE_NS,
    WAITING_CPU_RATIO,
    cpu_ratio,
    is_library,
)
from strobe.advise.training import Training
from strobe.analyse.intervals import covered
from strobe.frameworks import of_all

# With fewer samples in the steps judged, the shares are left to chance.
ENOUGH_SAMPLES = 20
# Each sample is compared with at most this many stacks that lead to the model.
_COMPARED = 50
# Names of the function that is a model's forward pass.
_FORWARD_FUNCTIONS = of_all(lambda framework: framework.forward_function)
# The operators before the forward pass are a forward pass themselves if gradients flow through this
# part of their time.
FORWARD_RATIO = 0.5
# Functions of libraries that return the next element.
_ITERATORS = ("__next__", "__iter__", "<genexpr>")

_Frame = tuple[str, int, str]  # file, line, function
_Sample = tuple[dict[str, Any], list[_Frame]]  # its row and its stack

_SAMPLES_IN_PHASES = """
    WITH phases AS (SELECT rank, ts_ns, end_ns, step, name FROM outline WHERE kind = 'phase')
    SELECT s.rank, p.step, p.name AS phase, s.place, s.function, s.stack,
           coalesce(s.waited_ns, 0) AS waited_ns
    FROM (FROM samples WHERE thread = 'training') s
    ASOF JOIN phases p ON p.rank = s.rank AND p.ts_ns <= s.ts_ns
    WHERE s.ts_ns < p.end_ns ORDER BY s.rank, s.ts_ns
"""


@dataclass(frozen=True)
class PlainSource:
    share: float  # of step time
    where: str | None
    function: str | None
    stage: str  # reading (off the processor) or transform
    rows: tuple[dict[str, Any], ...]


def plain_source(training: Training) -> PlainSource | None:
    """None if the samples do not show it."""
    samples = [
        row for row in training.rows(_SAMPLES_IN_PHASES)
        if training.judges(row["rank"], row["step"])
    ]  # fmt: skip
    if len(samples) < ENOUGH_SAMPLES:
        return None
    stacks = [_outermost_first(row["stack"]) for row in samples]
    at_model = _stacks_at_program(training, stacks) or [
        stack for stack, row in zip(stacks, samples, strict=True) if row["phase"] == "forward"
    ]
    if not at_model:
        return None
    in_gap = [
        (row, stack) for row, stack in zip(samples, stacks, strict=True) if row["phase"] == "gap"
    ]
    if _is_forward(training):
        return None
    sure: list[_Sample] = []
    unsure: list[_Sample] = []
    for row, stack in in_gap:
        is_source = _makes_data(row, stack, at_model) and not _computes_model(stack)
        (sure if is_source else unsure).append((row, stack))
    making = [row for row, _ in sure]
    places = Counter((row["place"], row["function"]) for row in making)
    where, function = places.most_common(1)[0][0] if places else (None, None)
    rows = tuple({"place": place, "function": name, "looks": count}
                 for (place, name), count in places.most_common(5))  # fmt: skip
    # The length of the gaps is known; the samples only show what happened in them.
    gap_ns = float(training.steps["gap_ns"].sum())
    count = len(making) + _delayed([stack for _, stack in sure], unsure)
    share = gap_ns / max(1, training.total_ns) * count / max(1, len(in_gap))
    on_core = cpu_ratio(training, ("gap",))
    is_waiting = on_core is not None and on_core < WAITING_CPU_RATIO
    return PlainSource(share, where, function, "reading" if is_waiting else "transform", rows)


def _delayed(sources: list[list[_Frame]], others: list[_Sample]) -> int:
    """The number of samples that belong to a source of data although they show a line after it.

    C code that makes a tensor of a list holds the GIL until it returns. A sample that waited for
    the GIL shows the next line that releases it.
    """
    return sum(
        LATE_NS <= row["waited_ns"] < CAUGHT_NS
        and any(_depth_if_earlier(source, stack) is not None for source in sources[:_COMPARED])
        for row, stack in others
    )


def _computes_model(stack: list[_Frame]) -> bool:
    """Whether it is inside a forward pass of the user's own, called as a plain method."""
    return any(name in _FORWARD_FUNCTIONS and not is_library(file) for file, _, name in stack)


def _is_forward(training: Training) -> bool:
    """Whether a backward pass follows from most operators before the forward pass. They are then a
    forward pass that was not recorded as one, and what else runs there cannot be distinguished."""
    in_gap = """
        SELECT t.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns FROM events e
        JOIN tracks t ON t.id = e.track_id
        ASOF JOIN (SELECT rank, ts_ns, end_ns, name FROM outline WHERE kind = 'phase') p
            ON p.rank = t.rank AND p.ts_ns <= e.ts_ns
        WHERE e.kind = 'op' AND t.device = 'cpu' AND p.name = 'gap' AND e.ts_ns < p.end_ns
    """
    linked = f"{in_gap} AND e.id IN (SELECT from_id FROM links WHERE kind = 'forward_backward')"
    all_ns, linked_ns = (
        sum(row[-1] for row in training.run.sql(covered(query, "rank")).fetchall())
        for query in (in_gap, linked)
    )
    return bool(all_ns) and linked_ns >= FORWARD_RATIO * all_ns


def _stacks_at_program(training: Training, stacks: list[list[_Frame]]) -> list[list[_Frame]]:
    """The stacks that lead to the call of a compiled program that trains. The loop may be at any
    line while the device computes, but the line of this call is known."""
    places = training.rows("""
        SELECT file, line, function FROM places
        WHERE what = 'update' AND json_extract(details, '$.program') IS NOT NULL
    """)
    found = []
    for place in places:
        for stack in stacks:
            for depth, (file, _, name) in enumerate(stack):
                if name == place["function"] and _name(file) == _name(place["file"]):
                    found.append([*stack[:depth], (file, int(place["line"]), name)])
                    break
    return found


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def _outermost_first(stack: str) -> list[_Frame]:
    try:
        return [(str(file), int(line), str(name)) for file, line, name in json.loads(stack)][::-1]
    except (ValueError, TypeError):
        return []


def _makes_data(row: dict[str, Any], stack: list[_Frame], at_model: list[list[_Frame]]) -> bool:
    """Whether the stack leaves those that lead to the model at an earlier line than theirs, and
    calls something there that can be a source of data."""
    votes = Counter(_depth_if_earlier(stack, other) for other in at_model[:_COMPARED])
    depth = votes.most_common(1)[0][0]
    if depth is None:
        return False
    called = stack[depth + 1 :]
    if any(name in _ITERATORS for _, _, name in called):
        return True
    return any(
        name == row["function"] and _ends_with(file, line, row) for file, line, name in called
    )


def _ends_with(file: str, line: int, row: dict[str, Any]) -> bool:
    """Whether this frame is the innermost one of the user's own code."""
    shown, _, number = str(row["place"]).rpartition(":")
    return number == str(line) and file.endswith(shown.rpartition("/")[2])


def _depth_if_earlier(stack: list[_Frame], other: list[_Frame]) -> int | None:
    """The depth at which two stacks are at different lines, if the first one's is earlier."""
    for depth, (mine, its) in enumerate(zip(stack, other, strict=False)):
        if (mine[0], mine[2]) != (its[0], its[2]):
            return None
        if mine[1] != its[1]:
            return depth if mine[1] < its[1] else None
    return None
