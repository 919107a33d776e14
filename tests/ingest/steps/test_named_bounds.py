import numpy as np
import pytest

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.steps import named_bounds
from strobe.ingest.steps.detection import Steps
from strobe.ingest.trace import spans
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Vocabulary
from strobe.model.schema import PHASES


def drawn(step: str) -> Steps:
    """One step, as `gap 0..5 forward 5..20 ...`."""
    words = step.split()
    bounds = [tuple(map(int, span.split(".."))) for span in words[1::2]]
    ints = lambda values: np.array(values, dtype=np.int64)  # noqa: E731
    return Steps(
        ints([bounds[0][0]]), ints([bounds[-1][1] - bounds[0][0]]), ints([1] * len(bounds)),
        ints([PHASES.index(name) for name in words[::2]]), ints([a for a, _ in bounds]),
        ints([b - a for a, b in bounds]), [],
    )  # fmt: skip


def text(steps: Steps) -> str:
    rows = zip(steps.phase_name, steps.phase_ts_ns, steps.phase_dur_ns, strict=True)
    return " ".join(f"{PHASES[name]} {ts}..{ts + dur}" for name, ts, dur in rows)


def moved(forward: str | None = None, backward: str | None = None) -> tuple[str, Problems]:
    """Operators: embed 3..6 of Net.a, mm 8..9 and 12..13 of Net.b, bmm 30..36."""
    words, said = Vocabulary(), Problems()
    names = [words.names[n] for n in ("aten::embed", "aten::mm", "aten::mm", "aten::bmm")]
    scope = np.array([words.scopes[s] for s in ("Net.a", "Net.b", "Net.b", "Net.b")])
    start, end = np.array([3, 8, 12, 30]), np.array([6, 9, 13, 36])
    ops = spans.make(start, end - start, KIND["op"], np.array(names), np.zeros(4))
    step = drawn("gap 0..5 forward 5..20 backward 20..40 update 40..45")
    result = named_bounds.moved(
        step, ops, scope, words, said, forward_point=forward, backward_point=backward
    )
    return text(result), said


@pytest.mark.parametrize(
    "forward, backward, expected",
    [
        ("aten::mm", None, "gap 0..8 forward 8..20 backward 20..40 update 40..45"),
        ("aten::embed", None, "gap 0..3 forward 3..20 backward 20..40 update 40..45"),
        ("Net.a/aten::embed", None, "gap 0..3 forward 3..20 backward 20..40 update 40..45"),
        (None, "aten::bmm", "gap 0..5 forward 5..20 backward 20..36 update 36..45"),
        ("aten::mm", "aten::bmm", "gap 0..8 forward 8..20 backward 20..36 update 36..45"),
    ],
)
def test_named_operators_move_the_bounds(forward, backward, expected):
    assert moved(forward, backward)[0] == expected


@pytest.mark.parametrize("point", ["aten::nothing", "Net.a/aten::mm", "Net.c/aten::mm"])
def test_a_point_that_names_nothing_is_said_and_left_out(point):
    result, said = moved(forward=point)
    assert result == "gap 0..5 forward 5..20 backward 20..40 update 40..45"
    assert len(said.columns(0)["count"]) == 1
