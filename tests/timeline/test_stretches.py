from strobe.timeline.stretches import MOST_STRETCHES
from tests.timeline.drawn import index_of


def test_ranks_that_lie_far_apart_are_stretches_of_their_own(tmp_path):
    index = index_of(
        tmp_path,
        """
        0/t op:a 1000..1010
        0/t op:b 1012..1020
        1/t op:a 90000001000..90000001010
        1/t op:b 90000001005..90000001030
        0/t op:c 90000001031..90000001032
        """,
    )
    assert index.about["stretches"] == [
        {"begin_ns": 0, "end_ns": 20, "events": 2, "ranks": [0]},
        {"begin_ns": 90_000_000_000, "end_ns": 90_000_000_032, "events": 3, "ranks": [0, 1]},
    ]


def test_a_gap_as_long_as_what_was_recorded_parts_nothing(tmp_path):
    index = index_of(
        tmp_path, "0/t op:a 0..90000000000\n0/t op:b 170000000000..170000000001\n1/t op:long 10..20"
    )
    assert [s["events"] for s in index.about["stretches"]] == [3]


def test_a_short_pause_parts_nothing_however_little_was_recorded(tmp_path):
    index = index_of(tmp_path, "0/t op:a 0..5\n0/t op:b 59000000000..59000000005")
    assert [s["events"] for s in index.about["stretches"]] == [2]


def test_a_run_without_events_has_none(tmp_path):
    assert index_of(tmp_path, "").about["stretches"] == []


def test_of_very_many_the_longest_gaps_part_them(tmp_path):
    drawing = "\n".join(f"0/t op:a {at * 10**11}..{at * 10**11 + 1}" for at in range(100))
    found = index_of(tmp_path, drawing).about["stretches"]
    assert len(found) == MOST_STRETCHES and sum(s["events"] for s in found) == 100
