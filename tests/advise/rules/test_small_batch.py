import pytest

from strobe.advise import advise, rules_named
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import small_batch
from tests.advise.device_drawings import Drawing
from tests.advise.operators import Op, training

LENGTHS_US = {"gap": 10, "forward": 300, "backward": 500, "update": 190}


def layer(batch, us=20, flops=800_000, shape=None):
    inside = (Op("aten::addmm", us - 5, [[64], [batch, 64], [64, 64]], flops=flops),)
    return Op("aten::linear", us, [shape or [batch, 64], [64, 64]], inside=inside)


def judged(tmp_path, *layers, tables=None):
    forward = list(layers)
    return small_batch.check(
        training(tmp_path, lengths_us=LENGTHS_US, forward=forward, tables=tables)
    )


def test_few_samples_in_a_batch_and_little_arithmetic(tmp_path):
    verdict = judged(tmp_path, layer(4), layer(4))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    # Of 1000 us, 10 us are data and two times 20 us arithmetic; with 8 times as many samples:
    assert verdict.expected_speedup == pytest.approx(8 * 1000 / (950 + 8 * 50), rel=0.01)
    assert verdict.share == pytest.approx(1 - 1 / verdict.expected_speedup)
    assert verdict.title == "Batches have only 4 samples, so 95% of each step is overhead."
    assert verdict.why.startswith("Only 5.0% of each step is work that grows with the batch.")
    assert "learning rate" in verdict.fixes[0]


def test_large_batches_are_clear(tmp_path):
    assert isinstance(judged(tmp_path, layer(64), layer(64)), Clear)


def test_batches_that_are_small_but_much_work_are_clear(tmp_path):
    assert isinstance(judged(tmp_path, layer(4, us=290, flops=40_000_000)), Clear)


def test_long_operators_without_flops_count_as_work(tmp_path):
    verdict = judged(tmp_path / "a", layer(4), Op("aten::sort", 250, [[4, 4096]]))
    assert verdict.expected_speedup < judged(tmp_path / "b", layer(4)).expected_speedup / 1.5


def test_the_number_of_items_that_a_loader_gave_comes_first(tmp_path):
    batches = {"rank": [0], "loader": [1], "worker": [-1], "ts_ns": [0], "fetch_ns": [1],
               "fetch_cpu_ns": [1], "collate_ns": [1], "items": [64]}  # fmt: skip
    verdict = judged(tmp_path, layer(4), tables={"batches": batches})
    assert isinstance(verdict, Clear) and verdict.why == "Batches of 64 samples are not small."


def test_sequences_do_not_tell_the_number_of_samples(tmp_path):
    assert isinstance(judged(tmp_path, layer(4, shape=[4, 8, 64])), CannotTell)


def test_layers_that_disagree_do_not_tell_it_either(tmp_path):
    assert isinstance(judged(tmp_path, layer(4), layer(32, shape=[32, 60])), CannotTell)


def test_a_loop_over_tiny_operators_explains_it(tmp_path):
    from strobe.advise import EXPLAINS

    assert small_batch.NAME in EXPLAINS["tiny-operators"]


def test_on_devices_other_rules_judge_it(tmp_path):
    drawing = Drawing().steps().launched("kernel", "gemm", 10, 20, 80)
    run = drawing.training(tmp_path, devices=["cuda:0 H100"]).run
    assert advise(run, rules_named(["small-batch"])).clear
