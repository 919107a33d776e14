import numpy as np

from strobe.ingest.building import nesting
from strobe.ingest.building.allocations import allocations, containing
from strobe.ingest.trace.problems import Problems
from strobe.ingest.trace.spans import Spans, Vocabulary, make
from strobe.ingest.trace.trace import Memory


def spans(*given: tuple[int, int]) -> tuple[Spans, np.ndarray]:
    start = np.array([s for s, _ in given])
    length = np.array([e - s for s, e in given])
    found = make(start, length, 0, np.zeros(len(given)), np.zeros(len(given)))
    return found, nesting.parents(found.track, start, length)


def table(*instants: tuple[int, int, int], said=None):
    """Rows (address, bytes, ts, freed, event) for instants (ts, address, bytes)."""
    ts, address, size = (np.array(c) for c in zip(*instants, strict=True))
    nothing = np.zeros(len(ts), dtype=np.int64)
    memory = Memory(ts, nothing, address, size, nothing)
    found, parent = spans((0, 100), (10, 20))
    words = Vocabulary()
    words.texts["cpu"]
    inside = containing(memory.track, ts, found, parent)
    columns = allocations(
        memory, np.where(inside >= 0, inside + 1000, -1), words=words, rank=3,
        said=said or Problems(),
    )  # fmt: skip
    names = ("address", "bytes", "ts_ns", "freed_ns", "event_id")
    return list(zip(*(columns[name].tolist() for name in names), strict=True)) if columns else []


def test_a_block_lives_until_its_address_is_freed():
    rows = table((12, 7, 64), (15, 8, 32), (30, 7, -64), (40, 7, 16), (50, 7, -16))
    assert rows == [(7, 64, 12, 30, 1001), (8, 32, 15, None, 1001), (7, 16, 40, 50, 1000)]


def test_a_free_of_an_older_block_is_left_out_and_one_of_another_size_does_not_match():
    assert table((5, 7, -64), (6, 7, 64), (9, 7, -32)) == [(7, 64, 6, None, 1000)]


def test_an_allocation_at_the_same_address_means_the_free_was_not_seen():
    assert table((5, 7, 64), (9, 7, 64), (11, 7, -64)) == [
        (7, 64, 5, None, 1000), (7, 64, 9, 11, 1000),
    ]  # fmt: skip


def test_instants_without_an_address_are_told():
    said = Problems()
    assert table((5, 0, 64), said=said) == []
    assert list(said.counts.values()) == [1]


def test_the_innermost_span_around_a_moment():
    found, parent = spans((0, 100), (10, 20), (12, 14), (30, 40))
    moments = np.array([5, 10, 13, 17, 25, 100, 101])
    track = np.zeros(len(moments), dtype=np.int64)
    inside = containing(track, moments, found, parent)
    assert inside.tolist() == [0, 1, 2, 1, 0, 0, -1]
