from strobe.collect.on_demand.window import AskedWindow, Ending
from strobe.model.options import Options


def window(settle=lambda: True, start=10, stop=12):
    return AskedWindow(generation=1, start=start, stop=stop, options=Options(), settle=settle)


def test_it_takes_its_steps_and_the_one_before():
    asked = window()
    assert [step for step in range(1, 20) if asked.is_due(step) and asked.takes(step)] == [
        9,
        10,
        11,
    ]
    assert asked.is_over


def test_the_first_step_has_none_before():
    asked = window(start=1, stop=2)
    assert asked.is_due(1) and asked.takes(1) and not asked.takes(2)


def test_what_is_open_when_it_is_due_is_settled_then_and_once():
    asked_for = []

    def settle():
        asked_for.append("once")
        return False

    asked = window(settle)
    assert not asked.takes(9) and not asked.takes(10)
    assert asked_for == ["once"] and asked.is_over


def test_a_window_refused_while_it_runs_ends():
    asked = window(stop=100)
    assert asked.takes(9)
    asked.begun(9)
    asked.refuse("the disk is full")
    assert not asked.takes(10)
    assert not asked.is_over  # until what records it has ended
    asked.end(10)
    assert asked.is_over and (asked.began_at, asked.ended_at) == (10, 10)


def test_an_end_before_its_time():
    asked = window(stop=100)
    assert asked.takes(9)
    asked.endings = (Ending(15, lambda: True),)
    assert asked.takes(14) and not asked.takes(15)


def test_an_end_that_not_all_agree_on_is_none():
    asked = window(stop=100)
    asked.endings = (Ending(15, lambda: False),)
    assert asked.takes(15) and asked.takes(16)


def test_an_end_that_was_agreed_on_stands_when_a_later_one_is_proposed():
    """As a leader does who takes over, and does not know of the first."""
    asked = window(stop=100)
    asked.endings = (Ending(15, lambda: True), Ending(20, lambda: True))
    assert asked.takes(14) and not asked.takes(15)
