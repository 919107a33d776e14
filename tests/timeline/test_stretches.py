from strobe.timeline.stretches import MOST_STRETCHES
from tests.timeline.drawn import index_of


def test_ranks_that_lie_far_apart_are_stretches_of_their_own(tmp_path):
    index = index_of(
        tmp_path,
        """
        0/t op:a 1000..1010
        0/t op:b 1012..1020
        1/t op:a 900000..900010
        1/t op:b 900005..900030
        0/t op:c 900031..900032
        """,
    )
    assert index.about["stretches"] == [
        {"begin_ns": 0, "end_ns": 20, "events": 2, "ranks": [0]},
        {"begin_ns": 899_000, "end_ns": 899_032, "events": 3, "ranks": [0, 1]},
    ]


def test_a_gap_as_long_as_what_was_recorded_parts_nothing(tmp_path):
    index = index_of(tmp_path, "0/t op:a 0..50\n0/t op:b 150..200\n1/t op:long 10..20")
    assert [s["events"] for s in index.about["stretches"]] == [3]


def test_a_run_without_events_has_none(tmp_path):
    assert index_of(tmp_path, "").about["stretches"] == []


def test_of_very_many_the_longest_gaps_part_them(tmp_path):
    drawing = "\n".join(f"0/t op:a {at * 10**6}..{at * 10**6 + 1}" for at in range(100))
    found = index_of(tmp_path, drawing).about["stretches"]
    assert len(found) == MOST_STRETCHES and sum(s["events"] for s in found) == 100
