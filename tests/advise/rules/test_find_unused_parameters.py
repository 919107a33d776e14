import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import find_unused_parameters
from strobe.advise.training import Training
from tests.advise.drawings import same, steps
from tests.helpers import make_run


def judged(tmp_path, step_us=1000, **wrapper):
    run = make_run(tmp_path, steps(*same({"forward": step_us}, 20)))
    wrapper = {"wrapper": "DistributedDataParallel", "module": "Net", **wrapper}
    run.manifest.ranks[0].parallel = {"mode": "distributed", "wrappers": [wrapper]}
    return find_unused_parameters.check(Training(run))


SEARCHES = {"find_unused_parameters": True, "unused_parameter_bytes": 0, "parameter_tensors": 20}


def test_looking_for_parameters_that_are_all_used(tmp_path):
    verdict = judged(tmp_path, **SEARCHES)
    assert isinstance(verdict, Finding) and not verdict.is_certain and not verdict.is_warning
    assert verdict.share == pytest.approx(20 * 7 / 1000)
    assert verdict.title == (
        "Searching for unused parameters costs about 14% of step time, although all are used."
    )
    assert "all 20 parameter tensors are used" in verdict.why
    assert verdict.fixes[0].startswith("Remove `find_unused_parameters=True`")


def test_a_single_parameter_tensor_is_named_in_the_singular(tmp_path):
    verdict = judged(tmp_path / "a", step_us=100, **{**SEARCHES, "parameter_tensors": 1})
    assert "the only parameter tensor is used" in verdict.why
    verdict = judged(tmp_path / "b", **{**SEARCHES, "parameter_tensors": 1})
    assert isinstance(verdict, Clear) and "only parameter tensor" in verdict.why


def test_in_long_steps_it_is_a_warning_and_then_clear(tmp_path):
    assert judged(tmp_path / "a", step_us=5_000, **SEARCHES).is_warning
    assert isinstance(judged(tmp_path / "b", step_us=50_000, **SEARCHES), Clear)


def test_where_parameters_are_unused_it_is_needed(tmp_path):
    assert isinstance(judged(tmp_path, **{**SEARCHES, "unused_parameter_bytes": 4096}), Clear)


def test_before_it_has_looked_it_cannot_be_told(tmp_path):
    assert isinstance(judged(tmp_path, find_unused_parameters=True), CannotTell)


def test_others_are_clear(tmp_path):
    assert isinstance(judged(tmp_path / "a", find_unused_parameters=False), Clear)
    run = make_run(tmp_path / "b", steps(*same({"forward": 100}, 20)))
    assert isinstance(find_unused_parameters.check(Training(run)), Clear)


def test_what_ddp_reports_is_read_after_its_tenth_iteration(tmp_path):
    torch = pytest.importorskip("torch")
    from strobe.collect.torch.parallel import _use_of_parameters

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'meet'}", rank=0, world_size=1
    )
    try:
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        wrapped = torch.nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
        assert _use_of_parameters(wrapped) == {}
        for _ in range(12):
            wrapped(torch.ones(1, 2)).sum().backward()
        assert _use_of_parameters(wrapped) == {"unused_parameter_bytes": 0, "parameter_tensors": 4}
        plain = torch.nn.parallel.DistributedDataParallel(net)
        assert _use_of_parameters(plain) == {}
    finally:
        torch.distributed.destroy_process_group()
