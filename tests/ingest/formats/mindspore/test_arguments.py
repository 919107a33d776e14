"""What operators were given, from the notes of one step."""

import json

import numpy as np

from strobe.ingest.formats.mindspore import arguments
from strobe.ingest.trace.problems import Problems
from tests.ingest.formats.mindspore.test_cells import called, operators

# A step: a product and what is added to it in a cell, an operator between cells, a product that
# runs as another than it was called, one of backward.
STEP = ["MatMul", "BiasAdd", "ReLU", "MatMul", "MatMul"]
CALLS = called(("Net.first", 0, 1), ("Net.second", 3, 3), ("Net", 0, 3))
TOLD = {"BiasAdd": "[[6, 4], [4]]"}  # by MindSpore
NOTED = [("MatMul", [[6, 3], [4, 3], [], []], 0), ("ReLU", [[6, 4]], 2),
         ("Dense", [[2, 3, 4], [5, 4], [5]], 3)]  # fmt: skip
KNOWN = ["[[6, 3], [4, 3], [], []]", "[[6, 4], [4]]", "[[6, 4]]", "[[6, 4], [5, 4]]", None]


def notes(*rows: tuple[str, list, int]) -> arguments.Notes:
    """Name, shapes, and the operator at whose time it was called."""
    moments = np.array([1000 * (at + 1) for _, _, at in rows], dtype=np.int64)
    return arguments.Notes([row[0] for row in rows], [row[1] for row in rows], moments)


def shapes(names: list[str], noted: arguments.Notes, told: list[str | None]) -> list[str | None]:
    """After it was put together; `told` by MindSpore of each operator."""
    found = operators(names)
    found.shape_texts = sorted({text for text in told if text})
    codes = [found.shape_texts.index(text) if text else -1 for text in told]
    found.shapes = np.array(codes, dtype=np.int64)
    arguments.put(found, CALLS, noted)
    return [found.shape_texts[code] if code >= 0 else None for code in found.shapes.tolist()]


def test_operators_have_the_shapes_of_their_notes_in_later_steps_too():
    told = [TOLD.get(name) for name in STEP]
    assert shapes(STEP * 3, notes(*NOTED), told * 3) == KNOWN * 3


def test_a_step_with_other_shapes_is_not_given_the_same():
    told = [TOLD.get(name) for name in STEP]
    other = ["[[5, 4], [4]]" if text else None for text in told]
    assert shapes(STEP * 2, notes(*NOTED), told + other) == KNOWN + other


def test_where_nothing_tells_that_shapes_are_the_same_they_are_not_known():
    nothing: list[str | None] = [None] * len(STEP)
    found = shapes(STEP * 2, notes(*NOTED), nothing * 2)
    assert found == [KNOWN[0], None, *KNOWN[2:], *nothing]


def test_a_cell_that_ran_more_or_fewer_than_it_called_tells_nothing():
    """The rest is called in ways that are not seen, or one call runs several."""
    told: list[str | None] = [None] * len(STEP)
    twice = notes(NOTED[0], *NOTED)
    assert shapes(STEP, twice, told)[:4] == [None, None, *KNOWN[2:4]]
    assert shapes(STEP, notes(*NOTED[1:]), told)[:4] == [None, None, *KNOWN[2:4]]


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    path = tmp_path / "strobe_arguments_0.json"
    for text in ("[[1,", "[[1]]", json.dumps([["MatMul", [], 2**80]]), "7"):
        said = Problems()
        path.write_text(text)
        assert arguments.read(path, said).names == []
        assert len(said.columns(0)["what"].values) == 1, text
