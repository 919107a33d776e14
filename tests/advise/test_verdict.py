import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.verdict import gain, sentence


def found(title="training waits for data 62 % of step time", speedup=2.63, **more):
    return Finding(title, 0.62, speedup, ("use 4 workers",), (), **more)


def test_the_dearest_fault_with_its_fix_place_and_gain():
    told = sentence({"a": found(where="train.py:31"), "b": found("less")}, {}, {})
    assert told == (
        "Training waits for data 62 % of step time: use 4 workers (train.py:31), "
        "about 2.6x faster (and 1 smaller fault below)"
    )


def test_a_place_is_said_once_and_names_keep_their_letters():
    told = sentence({"a": found("train.py:31 waits", where="train.py:31")}, {}, {})
    assert told == "train.py:31 waits: use 4 workers, about 2.6x faster"


def test_details_are_left_to_the_page():
    long = "DataLoader(..., num_workers=4) at train.py:31: " + "more words " * 9
    finding = Finding("it waits: for this and that; and more", 0.5, 2.0, (long,), ())
    assert sentence({"a": finding}, {}, {}) == (
        "It waits: DataLoader(..., num_workers=4) at train.py:31, about 2.0x faster"
    )


def test_a_warning_gives_way_to_what_costs_time():
    warning = found("memory grows", 1.0, is_warning=True)
    assert sentence({"a": warning, "b": found()}, {}, {}).startswith("Training waits")
    assert sentence({"a": warning}, {}, {}) == (
        "No fault costs 5 % of step time, but memory grows: use 4 workers"
    )


def test_no_fault_says_how_sure_that_is():
    clear, unknown = {"a": Clear("x"), "b": Clear("y")}, {"c": CannotTell("not recorded", "do")}
    assert sentence({}, clear, unknown) == (
        "No fault found that costs 5 % of step time: 2 rules clear, 1 could not tell"
    )
    assert sentence({}, {}, unknown) == "Nothing can be told: not recorded"


@pytest.mark.parametrize("speedup, told", [(1.07, "about 7 % faster"), (1.26, "about 1.3x faster")])
def test_gain(speedup, told):
    assert gain(found(speedup=speedup)) == told
