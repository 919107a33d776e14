import json

import pytest

from strobe.model.options import (
    EXPORT_FORMATS,
    HARDWARE_METRICS,
    NAMES,
    OPTIONS,
    Options,
    doc,
    schedule,
)
from strobe.show.formats import FORMATS


def full_steps(options: Options, until: int = 22) -> list[int]:
    return [step for step in range(1, until) if options.wants_full(step)]


@pytest.mark.parametrize(
    "options, expected",
    [
        (Options(), [6, 7, 8, 9, 10]),
        (Options(light=True), []),
        (Options(op_time=False), []),
        (Options(steps=(3, 5)), [3, 4]),
        (Options(every=(10, 2)), [9, 10, 19, 20]),
        (Options(whole=True), list(range(1, 22))),
        (Options(schedule=schedule(wait=2, warmup=1, active=2)), [4, 5, 9, 10, 14, 15, 19, 20]),
        (
            Options(schedule=schedule(wait=1, warmup=1, active=1, repeat=2, skip_first=4)),
            [7, 10],
        ),
    ],
)
def test_which_steps_are_recorded_in_full(options: Options, expected: list[int]):
    assert full_steps(options) == expected
    given_up = [step for step in range(1, 22) if options.wants_no_more(step)]
    assert not set(given_up) & set(expected)
    assert bool(given_up) == (21 not in expected and not options.every and not options.schedule)


@pytest.mark.parametrize(
    "options",
    [
        Options(every=(500, 5), with_stack=True),
        Options(light=True),
        Options(record_shapes=False),
        Options.from_json({"profiler_level": 2, "formats": ["csv", "json"], "format": "csv,json"}),
        Options.from_json({"schedule": {"wait": 1, "active": 2}, "profile_framework": None}),
    ],
)
def test_options_survive_json(options: Options):
    stored = json.loads(json.dumps(options.to_json()))
    assert Options.from_stored(stored) == options


def test_every_option_has_a_sentence_and_its_aliases_are_its_own():
    for option in OPTIONS.values():
        assert doc(option.name).endswith("."), option.name
    names = [n for option in OPTIONS.values() for n in (option.name, *option.metadata["aliases"])]
    assert len(names) == len(set(names)) == len(NAMES)


def test_the_formats_that_can_be_asked_for_are_those_that_can_be_written():
    assert sorted(EXPORT_FORMATS) == sorted(known.NAME for known in FORMATS)


def test_groups_of_hardware_counters_are_those_that_can_be_opened():
    from strobe.collect.host import hardware_counters

    assert set(HARDWARE_METRICS) == {*hardware_counters._EVENTS, "all"}
    assert set(hardware_counters._OF_KERNELS) == set(hardware_counters._EVENTS)
