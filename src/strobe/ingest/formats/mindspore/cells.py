"""The cells whose operators ran in a window without graphs: strobe_cells_0.json for the forward
pass, strobe_gradients_0.json for the backward pass.

Its calls of one step waited for their operators (collect/mindspore/cells.py, and _gradients.py), so
an operator that began in the time of a call belongs to it. Operators run in the order in which they
are called: where those of that step follow each other again, they belong to the same cells.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from strobe.ingest.building import nesting
from strobe.ingest.formats import compressed
from strobe.ingest.formats.mindspore.ops import Operators
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary


class Calls(NamedTuple):
    paths: list[str]
    ts_ns: Array
    dur_ns: Array


def read(path: Path, said: Problems) -> Calls:
    try:
        text = b"".join(compressed.blocks(path, lambda what: said.add(path.name, what)))
        rows = [(str(name), int(ts_ns), int(dur_ns)) for name, ts_ns, dur_ns in json.loads(text)]
        times = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 2)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        said.add(path.name, f"it cannot be read, and operators have no modules: {error}")
        rows, times = [], np.zeros((0, 2), dtype=np.int64)
    return Calls([row[0] for row in rows], times[:, 0], times[:, 1])


def scopes(operators: Operators, calls: Calls, words: Vocabulary) -> Array:
    """For each operator the number of the path of the cell that called it; -1 where unknown."""
    around = in_their_time(operators.ts_ns, calls)
    table = np.append(words.scopes.of(calls.paths, len(calls.paths)), -1)
    result = np.where(around >= 0, table[around], -1)
    own = result.copy()
    for learned, there in repeats(operators.name, around):
        result[there] = own[learned]
    return result


def in_their_time(moments_ns: Array, calls: Calls) -> Array:
    """For each moment the innermost call that it lies in; -1 outside of them all."""
    ts_ns = np.concatenate([calls.ts_ns, moments_ns])
    dur_ns = np.concatenate([calls.dur_ns, np.zeros_like(moments_ns)])
    parent = nesting.parents(np.zeros(len(ts_ns), dtype=np.int64), ts_ns, dur_ns)
    count = len(calls.paths)
    found: Array = nesting.nearest(np.arange(len(ts_ns)) < count, parent)[count:]
    return found


def repeats(names: Array, around: Array) -> Iterator[tuple[slice, slice]]:
    """The operators that calls were seen around, and each stretch in which the same names follow
    each other in the same order, one time after the other."""
    known = np.flatnonzero(around >= 0)
    if not len(known):
        return
    first, end = int(known[0]), int(known[-1]) + 1
    for place in _places(names, first, end):
        yield slice(first, end), slice(place, place + end - first)


def _places(names: Array, first: int, end: int) -> list[int]:
    pattern, count = names[first:end], end - first
    begins = np.flatnonzero(names[: len(names) - count + 1] == pattern[0])
    for ahead in range(1, min(count, 16)):  # few begin alike and go on otherwise
        begins = begins[names[begins + ahead] == pattern[ahead]]
    found, free = [], 0
    for place in begins.tolist():
        if place >= free and np.array_equal(names[place : place + count], pattern):
            found.append(place)
            free = place + count
    return found
