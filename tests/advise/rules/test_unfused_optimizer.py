import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import unfused_optimizer
from tests.advise.operators import Op, training

LENGTHS = {"forward": 500, "backward": 500, "update": 1000}


def judged(folder, update):
    found = training(folder, lengths_us=LENGTHS, forward=[Op("aten::mm", 9)], update=update)
    return unfused_optimizer.check(found)


def loop(tensors, prefix="aten::"):
    """Two operators for each of the tensors, of 8 numbers."""
    each = [Op(f"{prefix}lerp_", 5, [[8], [8]]), Op(f"{prefix}addcdiv_", 5, [[8], [8], [8]])]
    return each * tensors


def test_an_update_one_by_one_costs_what_a_fused_one_would_not(tmp_path):
    verdict = judged(tmp_path, loop(30))
    assert isinstance(verdict, Finding)
    # A fused one: 30 tensors, 5 us each and 8 * 4 * 7 bytes at 30 bytes a ns.
    fused_us = 30 * (5 + 8 * 4 * 7 / 30 / 1000)
    assert abs(verdict.share - (1000 - fused_us) / 2000) < 1e-6
    assert verdict.title == (
        "The update processes the parameters one by one and takes 50% of step time."
    )
    assert verdict.why.startswith("The update calls 60 operators per step for 30 tensors")
    assert "fused=True" in verdict.fixes[0]


@pytest.mark.parametrize("prefix", ["aten::_foreach_", "aten::_fused_"])
def test_one_for_all_is_clear(tmp_path, prefix):
    verdict = judged(tmp_path, loop(30, prefix))
    assert verdict == Clear("The optimizer updates all parameters together.")


def test_few_tensors_are_no_fault_unless_they_are_large(tmp_path):
    assert isinstance(judged(tmp_path / "a", loop(19)), Clear)
    large = [Op("aten::addcdiv_", 400, [[400, 250]])] * 2
    assert isinstance(judged(tmp_path / "b", large), Clear)
    update = {**LENGTHS, "update": 9000}
    large = [Op("aten::addcdiv_", 4000, [[1000, 500]])] * 2
    found = training(tmp_path / "c", lengths_us=update, forward=[Op("aten::mm", 9)], update=large)
    verdict = unfused_optimizer.check(found)
    # A million parameters: 0.933 ms for a fused update, and 10 us for two tensors, of 10 ms.
    assert isinstance(verdict, Finding) and abs(verdict.share - (9 - 0.9433333) / 10) < 1e-6
