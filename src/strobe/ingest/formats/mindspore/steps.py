"""Steps of MindSpore's host, which marks none: told from operators that run once in each.

In a graph every operator has a name of its own and runs once a step; without graphs at least those
of the optimizer do. The k-th runs of all of them make up step k. Where a recording begins or ends
inside a step, the operators of that piece have run once more than the others.
"""

from typing import NamedTuple

import numpy as np

from strobe.ingest.formats.mindspore.ops import Operators
from strobe.ingest.formats.mindspore.phases import PARTS, Stretch, steps
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace.codes import Array, occurring
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary

_FEWEST = 3  # operators that run once a step
_SHARE = 0.1  # of the operators: so many may be said to have missed a step


class _Runs(NamedTuple):
    """All runs, sorted by operator and then by time."""

    name: Array
    ts_ns: Array
    end_ns: Array
    turn: Array  # which run of its operator it is, from 0
    of: Array  # runs of its operator


def found_steps(operators: Operators, source: str, said: Problems) -> Steps | None:
    """None, and a word about it, where runs do not fall into steps."""
    if not len(operators.ts_ns):
        return None
    bounds = _bounds(operators)
    if not bounds:
        said.add(source, "its operators do not tell where steps begin: there are none")
        return None
    return steps(bounds, operators.work())


def steps_of_spans(spans: Spans, words: Vocabulary, source: str, said: Problems) -> Steps | None:
    """The same from a timeline, where the full names of operators are in the argument `node`."""
    rows = np.flatnonzero(named_on_host(spans))
    nodes, name = occurring(spans.arg("node")[rows])
    texts, nothing = list(words.texts), np.full(len(rows), -1, dtype=np.int64)
    names = [texts[node] for node in nodes.tolist()]
    operators = Operators(spans.ts_ns[rows], spans.dur_ns[rows], name, nothing, nothing, names, [])
    return found_steps(operators, source, said)


def named_on_host(spans: Spans) -> Array:
    """Which spans are operators of a graph that the host ran."""
    found: Array = (spans.arg("node") >= 0) & (spans.arg("on_device") < 0)
    return found


def _bounds(operators: Operators) -> list[Stretch]:
    runs = _runs(operators)
    counts = np.bincount(operators.name)
    count = _steps_count(counts[counts > 0])
    whole = runs.of == count
    if whole.sum() < _FEWEST * count:
        return []
    step = np.where(whole, runs.turn, -1)
    once_more = runs.of == count + 1
    begins_inside = _comes_later(operators, runs.name[once_more], runs.name[whole])
    step[once_more] = _of_pieces(runs.turn[once_more], count, begins_inside)
    begins, ends = _windows(runs, step, count)
    if (begins[1:] < ends[:-1]).any():
        return []
    before = np.append(begins[0], ends[:-1])
    return list(zip(before.tolist(), ends.tolist(), strict=True))


def _runs(operators: Operators) -> _Runs:
    order = np.lexsort((operators.ts_ns, operators.name))
    name = operators.name[order]
    first = np.append(True, np.diff(name) != 0)
    place = np.arange(len(name))
    turn = place - np.maximum.accumulate(np.where(first, place, 0))
    ends = (operators.ts_ns + operators.dur_ns)[order]
    return _Runs(name, operators.ts_ns[order], ends, turn, np.bincount(name)[name])


def _steps_count(counts: Array) -> int:
    """How often most operators ran; one less if a good part of them ran once less."""
    values, how_many = np.unique(counts, return_counts=True)
    most = int(values[how_many.argmax()])
    fewer = int((counts == most - 1).sum())
    return most - 1 if most > 1 and fewer >= _SHARE * len(counts) else most


def _comes_later(operators: Operators, names: Array, others: Array) -> bool:
    """Whether some operators belong to a later part of the training than others do."""
    part = np.array([PARTS.index(m.part) for m in operators.meanings])
    mean = [part[n][part[n] > 0].mean() for n in (names, others) if (part[n] > 0).any()]
    return len(mean) == 2 and bool(mean[0] > mean[1])


def _of_pieces(turn: Array, count: int, begins_inside: bool) -> Array:
    """Steps of operators with a run too many: their first belongs to a step that had begun, or
    their last to one that was not ended."""
    return turn - 1 if begins_inside else np.where(turn < count, turn, -1)


def _windows(runs: _Runs, step: Array, count: int) -> tuple[Array, Array]:
    begins = np.full(count, np.iinfo(np.int64).max)
    ends = np.full(count, np.iinfo(np.int64).min)
    rows = np.flatnonzero(step >= 0)
    np.minimum.at(begins, step[rows], runs.ts_ns[rows])
    np.maximum.at(ends, step[rows], runs.end_ns[rows])
    return begins, ends
