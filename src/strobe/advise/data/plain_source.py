"""Data that the training loop makes itself, without a data loader: a generator, a function.

Its time lies in the gap before the forward pass. Whether it is data that is made there, or a log
that is written, is told by where the loop is: in a loop that runs from top to bottom, what comes
before the call of the model prepares its input, what comes after the update does not. And it must
be something that the loop calls: an iterator, or a function of the user's own. A line of the loop
by itself may be anything. A model's forward that is called as a plain method or function runs
before the marked forward pass, too: it is told by its name, and by operators that gradients flow
through.
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

# With fewer looks than this in the steps judged, their shares are chance.
ENOUGH_LOOKS = 20
# So many looks at the model's call show the ways that lead to it.
_COMPARED = 50
# What the forward pass of a model is called.
_PASSES = ("forward", "construct")
# Operators of a forward pass take this part of the time of all operators.
FORWARD_RATIO = 0.5
# Functions of libraries that hand out the next piece of something.
_ITERATORS = ("__next__", "__iter__", "<genexpr>")

_Frame = tuple[str, int, str]  # file, line, function
_Look = tuple[dict[str, Any], list[_Frame]]

_SQL = """
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
    """None where it cannot be told."""
    looks = [row for row in training.rows(_SQL) if training.judges(row["rank"], row["step"])]
    if len(looks) < ENOUGH_LOOKS:
        return None
    frames = [_outermost_first(row["stack"]) for row in looks]
    at_model = _ways_to_program(training, frames) or [
        f for f, row in zip(frames, looks, strict=True) if row["phase"] == "forward"
    ]
    if not at_model:
        return None
    in_gap = [(row, f) for row, f in zip(looks, frames, strict=True) if row["phase"] == "gap"]
    if _is_forward(training):
        return None
    sure: list[_Look] = []
    unsure: list[_Look] = []
    for row, stack in in_gap:
        is_source = _makes_data(row, stack, at_model) and not _computes_model(stack)
        (sure if is_source else unsure).append((row, stack))
    making = [row for row, _ in sure]
    places = Counter((row["place"], row["function"]) for row in making)
    where, function = places.most_common(1)[0][0] if places else (None, None)
    rows = tuple({"place": place, "function": name, "looks": count}
                 for (place, name), count in places.most_common(5))  # fmt: skip
    # How long the gaps are is known; the looks only tell what was done in them.
    gap_ns = float(training.steps["gap_ns"].sum())
    count = len(making) + _delayed([stack for _, stack in sure], unsure)
    share = gap_ns / max(1, training.total_ns) * count / max(1, len(in_gap))
    on_core = cpu_ratio(training, ("gap",))
    is_waiting = on_core is not None and on_core < WAITING_CPU_RATIO
    return PlainSource(share, where, function, "reading" if is_waiting else "transform", rows)


def _delayed(sources: list[list[_Frame]], others: list[_Look]) -> int:
    """How many samples belong to a source of data although they show a line after it.

    C code such as torch.tensor(list) holds Python's lock until it returns: a sample that had to
    wait for the lock shows the first line after that which gives it up.
    """
    return sum(
        LATE_NS <= row["waited_ns"] < CAUGHT_NS
        and any(_depth_if_earlier(source, stack) is not None for source in sources[:_COMPARED])
        for row, stack in others
    )


def _computes_model(stack: list[_Frame]) -> bool:
    """Whether it is inside a forward pass of the user's own, called as a plain method."""
    return any(name in _PASSES and not is_library(file) for file, _, name in stack)


def _is_forward(training: Training) -> bool:
    """Whether most operators before the forward pass belong to a backward pass: then they are a
    forward pass that nothing marks, and what else runs there cannot be told apart."""
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


def _ways_to_program(training: Training, frames: list[list[_Frame]]) -> list[list[_Frame]]:
    """Where a compiled program trains, the loop may be anywhere while the device computes. But the
    line that calls the program is known: the ways to it, as far as looks have shown them."""
    places = training.rows("""
        SELECT file, line, function FROM places
        WHERE what = 'update' AND json_extract(details, '$.program') IS NOT NULL
    """)
    found = []
    for place in places:
        for stack in frames:
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
    """Whether, where this way and that to the model part, this one is at an earlier line, and calls
    something that can be a source of data."""
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
    for depth, (mine, its) in enumerate(zip(stack, other, strict=False)):
        if (mine[0], mine[2]) != (its[0], its[2]):
            return None
        if mine[1] != its[1]:
            return depth if mine[1] < its[1] else None
    return None
