import random

import numpy as np

from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.recording.mark_counters import pairs, program_spans
from strobe.ingest.trace.spans import PROGRAMS_TRACK, Vocabulary
from strobe.model.journal import GRAPH_PARTS_BITS, Mark
from strobe.model.schema import COMPILED_PROGRAMS


def drawn(drawing: str, groups: str | None = None) -> list[tuple[int, int]]:
    """Pairs among marks drawn as ( and ); the letter below a mark is its group."""
    marks = np.array(list(drawing))
    group = np.array([ord(letter) for letter in groups or "a" * len(drawing)])
    first, last = pairs(marks == "(", marks == ")", group)
    return sorted(zip(first.tolist(), last.tolist(), strict=True))


def test_a_beginning_belongs_to_the_end_that_follows():
    assert drawn("()()") == [(0, 1), (2, 3)]


def test_pairs_nest():
    assert drawn("(()(()))") == [(0, 7), (1, 2), (3, 6), (4, 5)]


def test_what_lacks_its_other_half_is_left_out():
    assert drawn(")()") == [(1, 2)]
    assert drawn("(()") == [(1, 2)]
    assert drawn("(()()") == [(1, 2), (3, 4)]
    assert drawn("") == []


def test_groups_do_not_mix():
    assert drawn("(()))()", "ababbaa") == [(0, 2), (1, 3), (5, 6)]


def test_agrees_with_a_stack():
    rng = random.Random(4)
    for _ in range(200):
        marks = "".join(rng.choice("()") for _ in range(12))
        stack, wanted = [], []
        for place, mark in enumerate(marks):
            if mark == "(":
                stack.append(place)
            elif stack:
                wanted.append((stack.pop(), place))
        assert drawn(marks) == sorted(wanted)


def test_runs_of_compiled_programs_are_a_track_of_their_own():
    names = {1: "train_step", 2: "gradient of loss, not compiled", 3: "dispatch"}
    code, ref = np.full(4, int(Mark.GRAPH)), np.array([1, 2, 3, 1])
    parts = np.array([7, 7, 0, 7])  # a dispatch does nothing on the device
    value = np.array([50, 60, 5, 55]) << GRAPH_PARTS_BITS | parts
    ts_ns = np.array([100, 200, 300, 400])
    marks = Journal(ts_ns, value, ref, np.zeros(4, dtype=np.int64), code)
    marks.strings = {number: ("program", name) for number, name in names.items()}
    words = Vocabulary()
    found = program_spans(marks, ts_ns, words)
    assert found.ts_ns.tolist() == [100, 400] and found.dur_ns.tolist() == [50, 55]
    assert set(found.name.tolist()) == {words.names["program train_step"]}
    assert words.track_names[PROGRAMS_TRACK] == COMPILED_PROGRAMS
