import pytest

from strobe.errors import UsageError
from strobe.model.options import Options, parse_pair


def full_steps(options: Options, until: int = 22) -> list[int]:
    return [step for step in range(1, until) if options.wants_full(step)]


@pytest.mark.parametrize(
    "options, expected",
    [
        (Options(), [6, 7, 8, 9, 10]),
        (Options(light=True), []),
        (Options(steps=(3, 5)), [3, 4]),
        (Options(every=(10, 2)), [9, 10, 19, 20]),
        (Options(whole=True), list(range(1, 22))),
    ],
)
def test_which_steps_are_recorded_in_full(options: Options, expected: list[int]):
    assert full_steps(options) == expected


def test_options_survive_json():
    options = Options(every=(500, 5), with_stack=True)
    assert Options.from_json(options.to_json()) == options


def test_an_unknown_option_suggests_the_nearest():
    with pytest.raises(UsageError) as caught:
        Options.from_json({"with_stacks": True})
    assert caught.value.hint == "did you mean 'with_stack'?"


@pytest.mark.parametrize(
    "given",
    [{"light": True, "whole": True}, {"steps": [5, 5]}, {"every": [3, 4]}, {"timeline_limit": 0}],
)
def test_contradictions_are_refused(given: dict):
    with pytest.raises(UsageError):
        Options.from_json(given)


def test_a_pair_is_two_numbers():
    assert parse_pair("500:5", "every") == (500, 5)
    with pytest.raises(UsageError) as caught:
        parse_pair("10-20", "steps")
    assert "10:20" in caught.value.hint
