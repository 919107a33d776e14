import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import layout_copies
from tests.advise.operators import Op, training

LENGTHS = {"forward": 100, "backward": 80, "update": 20}


def judged(folder, *ops):
    return layout_copies.check(training(folder, lengths_us=LENGTHS, forward=[*ops]))


def copy(number, us, node="jit_remember/copy", megabytes=36):
    moved = int(2 * megabytes * 2**20)
    return Op(
        f"copy.{number}", us, [[49152, 192]], scope=None, node=f"{node}.{number}", bytes=moved
    )


def test_arguments_that_a_program_may_not_overwrite_are_copied(tmp_path):
    usual = Op("dot.1", 60, [[8, 8]], scope=None, node="jit(learn)/dot_general (/job/train.py:9)")
    verdict = judged(tmp_path, usual, copy(5, 30), copy(8, 10))
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 0.95 * 40 / 200) < 1e-6
    assert verdict.title == (
        "The compiled function `remember` spends 20% of step time copying its arguments."
    )
    assert "up to 36.0 MiB each" in verdict.why
    assert "jax.jit(remember, donate_argnums=...)" in verdict.fixes[0]


def test_a_program_that_only_copies_costs_its_whole_call(tmp_path):
    """The call takes 100 us of 200: memory for the copies is cleared before they are made."""
    ops = {"lengths_us": LENGTHS, "forward": [copy(5, 30), copy(8, 10)]}
    calls = {"runtime": ("dispatch remember", 100)}
    verdict = layout_copies.check(training(tmp_path / "alone", calls=calls, **ops))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.95 * 100 / 200, rel=0.01)
    # Where the same program computes as well, what the call takes says nothing of its copies.
    scatter = Op("scatter.1", 20, [[8, 8]], scope=None, node="jit(remember)/scatter (train.py:9)")
    ops["forward"].append(scatter)
    verdict = layout_copies.check(training(tmp_path / "beside", calls=calls, **ops))
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(0.95 * 40 / 200, rel=0.01)


def test_small_copies_of_a_compiler_and_those_of_the_script_are_none_of_these(tmp_path):
    small = judged(tmp_path / "a", copy(5, 30, megabytes=0.25))
    own = judged(tmp_path / "b", copy(5, 30, node="jit(f)/jvp()/copy"))
    assert isinstance(small, Clear) and isinstance(own, Clear)
