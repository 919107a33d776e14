"""What operators without graphs were given: strobe_arguments_0.json, noted in one step.

A note has the name, the shapes and the moment of a call (collect/mindspore/arguments.py). Where a
cell called as many operators of a kind as it ran, those are the ones, in their order. Steps that
run the same operators again are given the same, if the shapes that MindSpore told say so.
"""

import json
from collections import defaultdict
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats import compressed
from strobe.ingest.formats.mindspore import cells
from strobe.ingest.formats.mindspore.ops import Operators
from strobe.ingest.trace.codes import Array, Codes
from strobe.ingest.trace.problems import Problems

# Operators of which one runs as another: products of matrices.
PRODUCTS = frozenset(("MatMul", "MatMulExt", "Mm", "Dense", "BatchMatMul", "BatchMatMulExt", "Bmm"))


class Notes(NamedTuple):
    names: list[str]
    shapes: list[list[Any]]
    ts_ns: Array


def read(path: Path, said: Problems) -> Notes:
    try:
        text = b"".join(compressed.blocks(path, lambda what: said.add(path.name, what)))
        rows = [(str(name), list(shapes), int(ts_ns)) for name, shapes, ts_ns in json.loads(text)]
        ts_ns = np.array([row[2] for row in rows], dtype=np.int64)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        said.add(path.name, f"it cannot be read, and operators have no shapes: {error}")
        rows, ts_ns = [], np.zeros(0, dtype=np.int64)
    return Notes([row[0] for row in rows], [row[1] for row in rows], ts_ns)


def put(operators: Operators, calls: cells.Calls, notes: Notes) -> None:
    """Give operators the shapes that were noted, where they have none."""
    around = cells.in_their_time(operators.ts_ns, calls)
    told = operators.shapes.copy()
    texts = Codes[str]()
    texts.of(operators.shape_texts, len(operators.shape_texts))
    for row, note in _pairs(operators, around, notes, cells.in_their_time(notes.ts_ns, calls)):
        if told[row] < 0:
            kind = operators.meanings[operators.name[row]].type
            shapes = _as_run(kind, notes.names[note], notes.shapes[note])
            operators.shapes[row] = texts[json.dumps(shapes)]
    operators.shape_texts = list(texts)
    learned_shapes = operators.shapes.copy()
    for learned, there in cells.repeats(operators.name, around):
        if (told[learned] >= 0).any() and np.array_equal(told[learned], told[there]):
            operators.shapes[there] = learned_shapes[learned]


def _pairs(
    operators: Operators, around: Array, notes: Notes, note_around: Array
) -> list[tuple[int, int]]:
    """Operators and their notes: of each cell, where there are as many of a kind of both."""
    kinds = [m.type for m in operators.meanings]
    rows: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(around >= 0).tolist():
        rows[int(around[row]), _family(kinds[operators.name[row]])].append(row)
    noted: dict[tuple[int, str], list[int]] = defaultdict(list)
    for note in np.flatnonzero(note_around >= 0).tolist():
        noted[int(note_around[note]), _family(notes.names[note])].append(note)
    return [
        pair
        for key, found in rows.items()
        if len(found) == len(noted[key])
        for pair in zip(found, noted[key], strict=True)
    ]


def _family(kind: str) -> str:
    return "product" if kind in PRODUCTS else kind


def _as_run(kind: str, noted: str, shapes: list[Any]) -> list[Any]:
    """A product of rows with weights runs as that of two matrices, and without what is added."""
    if noted == kind or kind not in PRODUCTS or len(shapes) < 2 or not shapes[0]:
        return shapes
    if noted == "Dense":
        return [[prod(shapes[0][:-1]), shapes[0][-1]], shapes[1]]
    return shapes[:2]
