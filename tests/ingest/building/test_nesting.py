import random

import numpy as np
import pytest

from strobe.ingest.building import nesting
from strobe.ingest.building.nesting import nearest, parents


def of(*spans: tuple[int, int], track=None) -> list[int]:
    """The parents of spans given as (start, end)."""
    start = np.array([s for s, _ in spans])
    end = np.array([e for _, e in spans])
    return parents(np.array(track or [0] * len(spans)), start, end - start).tolist()


def by_stack(spans: list[tuple[int, int, int]]) -> list[int]:
    """The definition, one span after the other: (track, start, end)."""
    result = [-1] * len(spans)
    order = sorted(range(len(spans)), key=lambda i: (spans[i][0], spans[i][1], -spans[i][2], i))
    stack: list[tuple[int, int, float]] = []
    for row in order:
        track, start, end = spans[row]
        while stack and (stack[-1][1] != track or stack[-1][2] <= start):
            stack.pop()
        last = end if end > start else start + 0.5
        if stack:
            result[row], last = stack[-1][0], min(last, stack[-1][2])
        stack.append((row, track, last))
    return result


def random_nested(rng: random.Random, track: int, start: int, end: int, depth: int):
    yield track, start, end
    place = start
    while depth and place < end and rng.random() < 0.8:
        begin = rng.randint(place, end)
        finish = rng.randint(begin, end)
        yield from random_nested(rng, track, begin, finish, depth - 1)
        place = finish


def test_agrees_with_a_stack_on_random_nested_spans():
    rng = random.Random(11)
    for _ in range(150):
        spans = [s for track in range(3) for s in random_nested(rng, track, 0, 60, 5)]
        rng.shuffle(spans)
        columns = (np.array(c) for c in zip(*spans, strict=True))
        track, start, end = columns
        assert parents(track, start, end - start).tolist() == by_stack(spans)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_agrees_with_a_stack_on_spans_that_overlap_at_will(rounds, monkeypatch):
    monkeypatch.setattr(nesting, "_ROUNDS", rounds)
    rng = random.Random(12)
    for _ in range(150):
        starts = [rng.randrange(40) for _ in range(25)]
        spans = [(0, start, start + rng.randrange(12)) for start in starts]
        # beside them some that lie in one another, with nothing else around
        spans += [(0, 60, 70), (0, 61, 65), (0, 62, 63), (0, 66, 70)]
        track, start, end = (np.array(c) for c in zip(*spans, strict=True))
        assert parents(track, start, end - start).tolist() == by_stack(spans)


def test_the_fallback_gives_the_same(monkeypatch):
    monkeypatch.setattr(nesting, "_ROUNDS", 0)
    assert of((0, 10), (2, 4), (3, 12), (4, 5), (11, 12)) == [-1, 0, 1, 0, -1]
    monkeypatch.undo()
    assert of((0, 10), (2, 4), (3, 12), (4, 5), (11, 12)) == [-1, 0, 1, 0, -1]


def test_back_to_back_spans_are_siblings():
    assert of((0, 10), (0, 5), (5, 10), (10, 12)) == [-1, 0, 0, -1]


def test_of_equal_starts_the_longer_is_outside_and_of_equals_the_first():
    assert of((3, 4), (3, 9)) == [1, -1]
    assert of((3, 9), (3, 9)) == [-1, 0]


def test_an_instant_lies_in_what_begins_with_it_and_not_in_what_ends_there():
    assert of((0, 5), (0, 0), (3, 3), (5, 5)) == [-1, 0, 0, -1]


def test_a_span_that_outlasts_its_parent_by_a_rounding_does_not_catch_the_next():
    assert of((0, 10), (8, 11), (10, 20), (12, 13)) == [-1, 0, -1, 2]


def test_tracks_do_not_mix():
    assert of((0, 10), (1, 2), track=[0, 1]) == [-1, -1]


def test_no_spans():
    assert of() == []


def test_nearest_finds_the_innermost_chosen_one():
    parent = np.array([-1, 0, 1, 2, -1, 4])
    chosen = np.array([True, False, True, False, False, False])
    assert nearest(chosen, parent).tolist() == [0, 0, 2, 2, -1, -1]
