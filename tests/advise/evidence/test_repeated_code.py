import json

from strobe.advise.evidence.repeated_code import rare_code
from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import periodic_stall
from strobe.advise.training import Training
from tests.advise.drawings import no_core, of_framework, steps
from tests.helpers import make_run

STEP_US, LOOKS_US = 90_000, 30_000
FIT = ["/job/train.py", 30, "fit"]
SAVE = [["/lib/site-packages/torch/serialization.py", 5, "save"], ["/job/train.py", 12, "save"],
        ["/job/train.py", 33, "fit"]]  # fmt: skip
SLEEP = [["/job/train.py", 15, "upload"], ["/job/train.py", 34, "fit"]]


def drawn(tmp_path, long_us: dict[int, int], stack, count=45, extra=None) -> Training:
    """Steps of 90 ms, some with a gap of this length at a stack; samples every 30 ms."""
    parts = [{"gap": long_us.get(n, 0), "forward": STEP_US} for n in range(1, count + 1)]
    samples: list[tuple[int, str]] = []
    at = 0
    for one in parts:
        samples += [(at + us, json.dumps(stack)) for us in range(LOOKS_US, one["gap"], LOOKS_US)]
        at += one["gap"]
        samples += [(at + us, json.dumps([FIT])) for us in range(LOOKS_US, STEP_US, LOOKS_US)]
        at += STEP_US
    number = len(samples)
    table = {
        "rank": [0] * number, "ts_ns": [us * 1000 for us, _ in samples],
        "thread": ["training"] * number, "place": ["train.py:30"] * number,
        "function": ["fit"] * number, "stack": [stack for _, stack in samples],
        "cpu_ns": [0] * number, "waited_ns": [0] * number,
    }  # fmt: skip
    return Training(
        of_framework(make_run(tmp_path, steps(*parts), {"samples": table, **(extra or {})}))
    )


# Every ten steps, but not alike: on a busy disk one save takes three times as long as another.
UNLIKE = {11: 600_000, 21: 2_000_000, 31: 700_000, 41: 1_900_000}


def test_checkpoints_of_any_length_are_found_by_their_line(tmp_path):
    verdict = periodic_stall.check(drawn(tmp_path, UNLIKE, SAVE))
    assert isinstance(verdict, Finding) and verdict.where == "train.py:12"
    assert verdict.title.startswith("A checkpoint at train.py:12 stalls training every 10 steps")
    # 5.2 s, of which samples show all but the first 30 ms of each, and 42 steps of 90 ms.
    assert 0.55 < verdict.share < 0.60
    assert "threading.Thread" in verdict.fixes[0]


def test_at_irregular_distances_too(tmp_path):
    training = drawn(tmp_path, {9: 600_000, 14: 700_000, 37: 650_000}, SAVE)
    verdict = periodic_stall.check(training)
    assert isinstance(verdict, Finding) and "in 3 of 42 steps" in verdict.title
    assert any("ten times less often" in text for text in verdict.fixes)


def test_what_it_does_need_not_be_known(tmp_path):
    verdict = periodic_stall.check(drawn(tmp_path, {9: 600_000, 14: 700_000, 37: 650_000}, SLEEP))
    assert isinstance(verdict, Finding) and verdict.where == "train.py:15"


def test_a_line_that_other_programs_interrupt_is_not_the_cause(tmp_path):
    long = {9: 600_000, 14: 700_000, 37: 650_000}
    points, at, without = [(0, 0)], 0, 0
    for number in range(1, 46):
        at += long.get(number, 0)
        without += long.get(number, 0)
        points.append((at, without))
        at += STEP_US
        points.append((at, without))
    training = drawn(tmp_path, long, SLEEP, extra=no_core(*points))
    assert isinstance(periodic_stall.check(training), Clear)


def test_one_or_two_steps_may_do_anything_once(tmp_path):
    assert rare_code(drawn(tmp_path, {9: 600_000, 14: 700_000}, SLEEP), 0, 9e7) is None


def test_a_line_of_most_steps_is_an_ordinary_part_of_them(tmp_path):
    every_second = dict.fromkeys(range(2, 46, 2), 300_000)
    assert rare_code(drawn(tmp_path, every_second, SLEEP), 0, 9e7) is None


def test_the_innermost_line_is_named_with_the_time_in_each_step(tmp_path):
    code = rare_code(drawn(tmp_path, UNLIKE, SAVE), 0, 9e7)
    assert code is not None and (str(code.line), code.function) == ("train.py:12", "save")
    assert code.steps == (11, 21, 31, 41)
    assert [round(ns / 1e8) for ns in code.length_ns] == [6, 20, 7, 19]
    assert sum(code.stacks.values()) >= code.length_ns.sum()


def test_a_stall_that_was_not_sampled_leaves_the_others_regular(tmp_path):
    verdict = periodic_stall.check(
        drawn(tmp_path, {9: 600_000, 14: 700_000, 24: 650_000, 29: 900_000}, SLEEP)
    )
    assert isinstance(verdict, Finding) and "every 5 steps" in verdict.title


def test_an_evaluation_is_known_by_its_name_and_wanted_unless_it_takes_a_quarter(tmp_path):
    stack = [["/job/train.py", 15, "evaluate"], ["/job/train.py", 34, "fit"]]
    little = periodic_stall.check(drawn(tmp_path / "a", dict.fromkeys(UNLIKE, 200_000), stack))
    assert isinstance(little, Clear) and "because of an evaluation" in little.why
    much = periodic_stall.check(drawn(tmp_path / "b", UNLIKE, stack))
    assert isinstance(much, Finding) and much.title.startswith("An evaluation at train.py:15")
