"""Which cell called which operator, from the calls of one step."""

import json

import numpy as np

from strobe.ingest.formats.mindspore import cells
from strobe.ingest.formats.mindspore.ops import Operators
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary

# What one step runs: twice two operators of cells, one between them, one of backward.
STEP = ["MatMul", "Add", "Mul", "MatMul", "Add", "MatMulGrad"]
SCOPES = ["Net.first", "Net.first", "Net", "Net.second", "Net.second", None]


def operators(names: list[str]) -> Operators:
    """One each microsecond, for half of it."""
    count, distinct = len(names), sorted(set(names))
    nothing = np.full(count, -1, dtype=np.int64)
    return Operators(
        1000 * np.arange(1, count + 1), np.full(count, 500),
        np.array([distinct.index(name) for name in names]), nothing, nothing, distinct, [],
    )  # fmt: skip


def called(*rows: tuple[str, int, int]) -> cells.Calls:
    """Path, first operator and last operator of each call."""
    times = np.array([(1000 * first + 900, 1000 * (last - first + 1)) for _, first, last in rows])
    return cells.Calls([path for path, _, _ in rows], times[:, 0], times[:, 1])


def scopes(names: list[str], calls: cells.Calls) -> list[str | None]:
    words = Vocabulary()
    found = cells.scopes(operators(names), calls, words).tolist()
    return [list(words.scopes)[code] if code >= 0 else None for code in found]


def test_operators_of_later_steps_are_known_by_their_order():
    calls = called(("Net.first", 0, 1), ("Net.second", 3, 4), ("Net", 0, 4))
    assert scopes(STEP * 3, calls) == SCOPES * 3


def test_where_the_order_is_another_one_nothing_is_told():
    calls = called(("Net.first", 0, 1), ("Net.second", 3, 4), ("Net", 0, 4))
    other = ["MatMul", "Add", "Mul", "Add", "MatMulGrad"]  # it begins alike
    assert scopes(STEP + other + STEP, calls) == SCOPES + [None] * len(other) + SCOPES


def test_a_piece_of_the_order_at_the_end_is_not_enough():
    calls = called(("Net.first", 0, 1), ("Net.second", 3, 4), ("Net", 0, 4))
    assert scopes(STEP + STEP[:3], calls) == SCOPES + [None] * 3


def test_calls_without_operators_tell_nothing():
    assert scopes(["MatMul"], called(("Net", 5, 6))) == [None]


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    path = tmp_path / "strobe_cells_0.json"
    for text in ("[[1,", "[[1]]", json.dumps([["Net", 2**80, 1]]), "7"):
        said = Problems()
        path.write_text(text)
        assert cells.read(path, said).paths == []
        assert len(said.columns(0)["what"].values) == 1, text
