import pytest

from strobe.errors import UsageError
from strobe.timeline import search
from tests.timeline.drawn import index_of

DRAWING = """
    0/t0 op:aten::mm      10..20
    0/t0 op:aten::add     30..31
    0/t1 sync:aten::mm~wait 5..9
    0/t1 op:aten::mm      10..12
"""


@pytest.fixture
def index(tmp_path):
    return index_of(tmp_path, DRAWING)


def starts(index, hits):
    return sorted(hits.start_ns + index.origin_ns)


def test_every_word_must_be_in_the_name_in_any_case(index):
    assert starts(index, search.find(index, "MM aten")) == [5, 10, 10]
    assert starts(index, search.find(index, "mm wait")) == [5]
    assert starts(index, search.find(index, "nothing")) == []


def test_a_kind_can_be_asked_for(index):
    assert starts(index, search.find(index, "kind:op mm")) == [10, 10]
    assert starts(index, search.find(index, "kind:sync")) == [5]
    with pytest.raises(UsageError, match="unknown kind of event: noise"):
        search.find(index, "kind:noise")
    with pytest.raises(UsageError):
        search.find(index, "  ")


def test_what_was_found_is_summed_up_by_name(index):
    told = search.told(index, search.find(index, "aten"))
    assert told["total"] == 4
    assert [(n["name"], n["count"], n["total_ns"]) for n in told["names"]] == [
        ("aten::mm", 2, 12), ("aten::mm wait", 1, 4), ("aten::add", 1, 1),
    ]  # fmt: skip
    assert sum(told["density"]) == 4
    assert told["density"][0] == 1 and told["density"][-1] == 0


def test_next_and_previous_go_through_all_hits_in_order_of_time_and_round(index):
    hits = search.find(index, "mm")

    def walk(back):
        position, seen = -1, []
        for _ in range(4):
            place = search.following(index, hits, 0 if not back else 10**6, position, back)
            position = int(hits.position[place])
            seen.append(
                (int(hits.start_ns[place]) + index.origin_ns, search.number_of(hits, place))
            )
        return seen

    assert walk(back=False) == [(5, 1), (10, 2), (10, 3), (5, 1)]
    assert walk(back=True) == [(10, 3), (10, 2), (5, 1), (10, 3)]
    assert search.following(index, search.find(index, "nothing"), 0, -1, False) is None
