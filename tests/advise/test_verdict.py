import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.verdict import gain, sentence


def found(title="Training spends 62% of its time waiting for data", speedup=2.63, **more):
    return Finding(title, 0.62, speedup, ("use 4 workers",), (), **more)


def test_the_most_expensive_fault_with_its_fix_place_and_gain():
    told = sentence({"a": found(where="train.py:31"), "b": found("less")}, {}, {})
    assert told == (
        "Training spends 62% of its time waiting for data. Use 4 workers (train.py:31): "
        "about 2.6× faster. 1 smaller finding below."
    )


def test_a_place_is_named_once_and_names_keep_their_letters():
    told = sentence({"a": found("train.py:31 waits", where="train.py:31")}, {}, {})
    assert told == "train.py:31 waits. Use 4 workers: about 2.6× faster."


def test_details_are_left_to_the_page():
    long = "Set num_workers=4 on the DataLoader at train.py:31: " + "more words " * 9
    finding = Finding("it waits: for this and that; and more", 0.5, 2.0, (long,), ())
    assert sentence({"a": finding}, {}, {}) == (
        "It waits. Set num_workers=4 on the DataLoader at train.py:31: about 2.0× faster."
    )


def test_a_warning_comes_after_what_costs_time():
    warning = found("memory grows", 1.0, is_warning=True)
    assert sentence({"a": warning, "b": found()}, {}, {}).startswith("Training spends")
    assert sentence({"a": warning}, {"c": Clear("x")}, {}) == (
        "No fault costs 5% of step time. Warning: Memory grows. Use 4 workers."
    )
    assert sentence({"a": warning}, {}, {}) == "Warning: Memory grows. Use 4 workers."


def test_no_fault_says_how_sure_that_is():
    clear, unknown = {"a": Clear("x"), "b": Clear("y")}, {"c": CannotTell("not recorded", "do")}
    assert sentence({}, clear, unknown) == (
        "No fault costs 5% of step time: 2 checks passed, 1 skipped for missing data."
    )
    assert sentence({}, {}, unknown) == "Cannot tell why training is slow: not recorded."


def test_what_the_recording_suffered_from_comes_first():
    crowded = Finding("Other programs use 1.6 of 2 cores", 0.5, 2.0, ("stop them",), ())
    assert sentence({"a": found()}, {}, {}, {"busy-machine": crowded}) == (
        "Other programs use 1.6 of 2 cores. Training spends 62% of its time waiting for data. "
        "Use 4 workers: about 2.6× faster."
    )


@pytest.mark.parametrize(
    "speedup, shown",
    [(1.07, "about 7.0% faster"), (1.15, "about 15% faster"), (1.26, "about 1.3× faster"),
     (12.4, "about 12× faster")],
)  # fmt: skip
def test_gain(speedup, shown):
    assert gain(found(speedup=speedup)) == shown


def test_a_gain_that_depends_on_what_was_not_measured_is_a_range():
    assert gain(found(speedup_range=(1.1, 3.04))) == "10% to 3.0× faster"
