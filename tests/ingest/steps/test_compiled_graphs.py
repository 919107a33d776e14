"""Graphs are drawn: `G0-30` ran from 0 to 30, `K0-10` was compiled; operators `F2-8` forward,
`B8-20` backward, `U20-24` update, `A20-22` a collective. `W0-40` is a window; where none is drawn,
one has everything."""

import re

import numpy as np

from strobe.ingest.formats.kinds import KIND
from strobe.ingest.formats.mindspore.names import BACKWARD, FORWARD, UPDATE
from strobe.ingest.formats.mindspore.phases import PARTS
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.steps.compiled_graphs import divided
from strobe.ingest.steps.detection import Marks, Steps, decide
from strobe.ingest.trace.spans import Spans
from strobe.model.journal import COMPILATION, GRAPH_PARTS_BITS, GRAPH_UPDATE, Mark
from tests.ingest.steps.test_detection import text

PART = {"F": FORWARD, "B": BACKWARD, "U": UPDATE, "A": ""}
ALL = 7


def spans(drawing: str) -> list[tuple[str, int, int]]:
    found = re.findall(r"([A-Z][a-z]?):?(\d+)-(\d+)", drawing)
    return [(letter, int(begin), int(end)) for letter, begin, end in found]


def journal(drawing: str) -> Journal:
    """A graph counts as an update; data is asked for at its beginning."""
    rows = []
    drawn = spans(drawing)
    windows = [span for span in drawn if span[0] == "W"]
    for number, (_, begin, end) in enumerate(windows or [("W", -1, 10_000)]):
        rows += [(begin, Mark.WINDOW_BEGAN, 0, number), (end, Mark.WINDOW_ENDED, 0, number)]
    for letter, begin, end in drawn:
        ref = ord(letter[-1])
        if letter == "W":
            continue
        if letter.startswith("K"):
            rows += [(begin, Mark.SCOPE_BEGAN, 99, 0), (end, Mark.SCOPE_ENDED, 99, 0)]
        elif letter == "D":
            rows += [(begin, Mark.DATA_ASKED, 1, 0), (end, Mark.DATA_CAME, 1, 1)]
        else:
            rows += [(begin, Mark.UPDATE_BEGAN, ref, 0), (end, Mark.UPDATE_ENDED, ref, 0)]
            parts = GRAPH_UPDATE if letter == "O" else ALL
            rows += [(begin, Mark.GRAPH, ref, (end - begin) << GRAPH_PARTS_BITS | parts)]
    rows.sort(key=lambda row: row[0])
    ts, code, ref, value = np.array(rows, dtype=np.int64).T
    made = Journal(ts, value, ref, np.zeros_like(ts), code)
    made.strings[99] = ("scope", f"{COMPILATION}step/0")
    return made


def operators(drawing: str) -> Spans:
    rows = spans(drawing)
    begins, ends = (np.array([row[place] for row in rows], dtype=np.int64) for place in (1, 2))
    kinds = np.array([KIND["collective" if row[0] == "A" else "op"] for row in rows])
    part = np.array([PARTS.index(PART[row[0]]) for row in rows])
    zero = np.zeros(len(rows), dtype=np.int64)
    return Spans(begins, ends - begins, kinds, zero, zero, {"part": part})


def steps(drawing: str, *windows: str) -> Steps:
    marks = journal(drawing)
    decided = decide(Marks(marks.ts_ns, marks.code, marks.ref, marks.value, marks.thread))
    return divided(decided, marks, marks.ts_ns, [operators(window) for window in windows])


def check(drawing: str, window: str, expected: str) -> None:
    found = text(steps(drawing, *([window] if window else [])))
    assert found == "\n".join(line.strip() for line in expected.strip().splitlines())


def test_operators_divide_the_run_that_they_are_in():
    check(
        "D0-10 G10-50", "F12-20 B20-40 U40-48",
        "0..50 gap 10 forward 10 backward 20 update 10",
    )  # fmt: skip


def test_other_runs_of_the_graph_are_divided_in_proportion():
    check(
        "D0-10 G10-50 D50-60 G60-80",
        "F10-20 B20-40 U40-50",
        """
        0..50 gap 10 forward 10 backward 20 update 10
        50..80 gap 10 forward 5 backward 10 update 5
        """,
    )


def test_a_collective_that_nothing_hides_is_all_reduce():
    check(
        "D0-10 G10-50", "F10-20 B20-30 A30-42 U42-50",
        "0..50 gap 10 forward 10 backward 10 all_reduce 12 update 8",
    )  # fmt: skip


def test_compiling_is_rest_and_changes_no_proportion():
    check(
        "D0-10 G10-150 K12-110 D150-160 G160-200",
        "F160-170 B170-190 U190-200",
        """
        0..150 gap 10 rest 100 forward 10 backward 20 update 10
        150..200 gap 10 forward 10 backward 20 update 10
        """,
    )


def test_a_run_in_which_a_window_began_or_ended_lacks_operators_and_is_divided_like_others():
    check(
        "W10-65 D0-2 G2-30 D30-32 G32-60 D60-62 G62-90",
        "B20-28 U28-30 F32-46 B46-56 U56-60 F62-64",
        """
        0..30 gap 2 forward 14 backward 10 update 4
        30..60 gap 2 forward 14 backward 10 update 4
        60..90 gap 2 forward 14 backward 10 update 4
        """,
    )


def test_a_graph_that_no_window_saw_is_rest():
    check("D0-10 G10-50", "", "0..50 gap 10 rest 40")


def test_two_graphs_have_their_own_proportions():
    found = steps(
        "D0-10 Ga:10-50 Gb:50-60 D60-70 Ga:70-90 Gb:90-110",
        "F10-20 B20-30 U30-50 F50-55 B55-59 U59-60",
    )
    assert text(found).splitlines()[1] == (
        "60..110 gap 10 forward 5 backward 5 update 10 forward 10 backward 8 update 2"
    )


def test_a_graph_that_runs_on_while_the_optimizers_graph_waits_is_divided_with_it():
    """O: a graph of the optimizer alone."""
    check(
        "D0-10 G10-14 O14-50 D50-60 G60-62 O62-80",
        "F10-20 B20-40 U40-50",
        """
        0..50 gap 10 forward 10 backward 20 update 10
        50..80 gap 10 forward 5 backward 10 update 5
        """,
    )


def test_an_optimizers_graph_alone_is_update():
    check("D0-10 O10-50", "", "0..50 gap 10 update 40")


def test_without_graphs_nothing_changes():
    marks = journal("D0-10 D20-30")
    decided = decide(Marks(marks.ts_ns, marks.code, marks.ref, marks.value, marks.thread))
    assert divided(decided, marks, marks.ts_ns, []) is decided
