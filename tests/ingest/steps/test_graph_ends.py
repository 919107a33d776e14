"""Calls `G0-20` return while their graph runs on (`R` if somebody waited for it); operators `F2-8`,
`B8-20`, `U20-24` of a window `W0-40`. Times are in milliseconds."""

import numpy as np

from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.steps.compiled_graphs import divided
from strobe.ingest.steps.detection import Marks, Steps, decide
from strobe.ingest.steps.graph_ends import moved
from strobe.model.journal import GRAPH_PARTS_BITS, UPDATE_RAN_ON, Mark
from tests.ingest.steps.test_compiled_graphs import ALL, operators, spans
from tests.ingest.steps.test_detection import text

MS = 1_000_000
TRAIN_STEP = 7


def journal(drawing: str) -> Journal:
    rows = []
    for number, (letter, begin, end) in enumerate(spans(drawing)):
        if letter == "W":
            rows += [(begin, Mark.WINDOW_BEGAN, 0, number), (end, Mark.WINDOW_ENDED, 0, number)]
        elif letter == "D":
            rows += [(begin, Mark.DATA_ASKED, 1, 0), (end, Mark.DATA_CAME, 1, 1)]
        elif letter == "O":
            rows += [(begin, Mark.OWN_WORK, 0, (end - begin) * MS)]
        else:
            value = (end - begin) * MS << GRAPH_PARTS_BITS | ALL
            rows += [
                (begin, Mark.UPDATE_BEGAN, TRAIN_STEP, 0),
                (end, Mark.UPDATE_ENDED, TRAIN_STEP, UPDATE_RAN_ON if letter == "G" else 0),
                (begin, Mark.GRAPH, TRAIN_STEP, value),
            ]
    rows.sort(key=lambda row: row[0])
    ts, code, ref, value = np.array(rows, dtype=np.int64).T
    return Journal(ts * MS, value, ref, np.zeros_like(ts), code)


def steps(drawing: str, window: str) -> tuple[Steps, frozenset[int]]:
    marks, ran = journal(drawing), operators(window)
    ran.ts_ns, ran.dur_ns = ran.ts_ns * MS, ran.dur_ns * MS
    ends = moved(marks, marks.ts_ns, [ran])
    again = ends.marks
    decided = decide(Marks(ends.ts_ns, again.code, again.ref, again.value, again.thread))
    return divided(decided, again, ends.ts_ns, [ran], ends.unknown), ends.unknown


def check(drawing: str, window: str, expected: str) -> None:
    found, unknown = steps(drawing, window)
    assert not unknown
    shown = text(found).replace("000000", "")
    assert shown == "\n".join(line.strip() for line in expected.strip().splitlines())


def test_a_step_ends_where_its_graph_ends_not_where_its_call_returns():
    check(
        "W0-90 G0-10 G11-40 R41-80",
        "F0-10 B10-24 U24-30 F30-40 B40-54 U54-60 F60-64 B64-74 U74-80",
        """
        0..30 forward 10 backward 14 update 6
        30..60 forward 10 backward 14 update 6
        60..80 forward 4 backward 10 update 6
        """,
    )


def test_data_that_is_fetched_while_the_graph_runs_is_not_waited_for():
    check(
        "W0-90 G0-10 D12-20 G20-45 D46-80 R80-90",
        "F0-10 B10-24 U24-30 F35-45 B45-54 U54-60 F80-84 B84-88 U88-90",
        """
        0..30 forward 10 backward 14 update 6
        30..60 forward 15 backward 9 update 6
        60..90 gap 20 forward 4 backward 4 update 2
        """,
    )


def test_calls_outside_of_windows_are_moved_in_proportion():
    """Each runs 10 ms inside its call and 20 ms behind it; the next call waits for that."""
    found, _ = steps(
        "W0-60 G0-10 R11-60 G100-110 G110-140 R140-190",
        "F0-10 B10-24 U24-30 F30-40 B40-54 U54-60",
    )
    ends = ((found.step_ts_ns + found.step_dur_ns) // MS).tolist()
    assert ends == [30, 60, 130, 173, 190]


def test_our_own_wait_for_a_graph_is_time_of_the_graph():
    check(
        "W0-35 O36-62 G0-10 G11-35 R65-80",
        "F0-10 B10-24 U24-30 F30-36 B36-54 U54-60",
        """
        0..30 forward 10 backward 14 update 6
        30..60 forward 6 backward 18 update 6
        60..80 recorder 2 gap 3 forward 4 backward 8 update 3
        """,
    )


def test_our_own_wait_inside_a_call_is_time_of_the_graph():
    check(
        "W0-45 G0-10 R11-62 O45-62",
        "F0-10 B10-24 U24-30 F30-36 B36-54 U54-60",
        """
        0..30 forward 10 backward 14 update 6
        30..62 forward 6 backward 18 update 6 recorder 2
        """,
    )


def test_a_graph_that_is_waited_for_is_left_as_it_is():
    check(
        "W0-80 R0-30 R40-70",
        "F0-10 B10-20 U20-28 F40-50 B50-60 U60-68",
        """
        0..30 forward 10 backward 10 update 10
        30..70 gap 10 forward 10 backward 10 update 10
        """,
    )


def test_without_a_window_nothing_is_moved():
    marks = journal("G0-10 G11-40 R41-80")
    ends = moved(marks, marks.ts_ns, [])
    assert ends.ts_ns.tolist() == marks.ts_ns.tolist() and not ends.unknown


def test_operators_that_cannot_be_matched_to_calls_are_not_shown_as_phases():
    found, unknown = steps("W0-60 G0-10 G11-40 R41-80", "F0-10 B10-24 U24-30 F30-40 B40-54")
    assert unknown == {TRAIN_STEP}
    assert {phase for phase in text(found).split() if phase.isalpha()} <= {"rest", "gap"}
