import random

import numpy as np

from strobe.ingest.counters import pairs


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
