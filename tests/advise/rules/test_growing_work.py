import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import growing_work
from strobe.advise.training import Training
from tests.advise.drawings import same, steps
from tests.helpers import make_run


def judged(tmp_path, parts):
    return growing_work.check(Training(make_run(tmp_path, steps(*parts))))


def test_a_gap_that_grows_with_every_step_costs_what_it_takes_beyond_the_first_ones(tmp_path):
    # 100 µs more in every step; the first three are not judged. Mean gap 5,250 µs, of which
    # 5,150 are beyond the 100 µs that the gap begins with.
    parts = [{"gap": 100 * number, "forward": 5000} for number in range(1, 102)]
    verdict = judged(tmp_path, parts)
    assert isinstance(verdict, Finding)
    assert verdict.title.startswith("The work between steps gets slower with every step")
    mean_gap = sum(range(4, 102)) / 98 * 100
    assert verdict.share == pytest.approx(mean_gap / (5000 + mean_gap), rel=0.03)


def test_a_backward_pass_that_grows_while_the_forward_pass_does_not_is_a_kept_graph(tmp_path):
    parts = [{"forward": 2000, "backward": 2000 + 50 * number} for number in range(100)]
    verdict = judged(tmp_path, parts)
    assert isinstance(verdict, Finding)
    assert verdict.title.startswith("The backward pass gets slower with every step")
    mean_growth = sum(range(3, 100)) / 97 * 50
    assert verdict.share == pytest.approx(mean_growth / (4000 + mean_growth), rel=0.03)


def test_steps_that_get_longer_as_a_whole_are_not_this_fault(tmp_path):
    # Longer episodes: every part of the step has more to do.
    parts = [
        {"gap": 100 * n, "forward": 100 * n, "backward": 100 * n, "update": 50}
        for n in range(10, 110)
    ]
    assert isinstance(judged(tmp_path, parts), Clear)


def test_steps_that_stay_as_they_are_are_clear(tmp_path):
    assert isinstance(judged(tmp_path, same({"gap": 800, "forward": 900}, 100)), Clear)


def test_a_part_that_jumps_once_is_not_growth(tmp_path):
    parts = same({"gap": 1000, "forward": 900}, 50) + same({"gap": 3000, "forward": 900}, 50)
    assert isinstance(judged(tmp_path, parts), Clear)


def test_a_short_run_cannot_tell(tmp_path):
    parts = [{"gap": 1000 * number, "forward": 500} for number in range(1, 30)]
    assert isinstance(judged(tmp_path, parts), CannotTell)
