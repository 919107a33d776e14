import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import idle_cores
from tests.advise.operators import Op, training

MM = Op("aten::mm", 800, [[512, 512], [512, 512]])
LENGTHS_US = {"forward": 1000, "backward": 1000}


def counters(*, threads=1, cores=2, physical=2, busy=1.0):
    """Ten seconds in which the process computed for `busy` cores."""
    rows = [
        ("cores_usable_milli", 0, cores * 1000),
        ("cores_physical", 0, physical),
        ("intra_op_threads", 0, threads),
        ("process_cpu_ns_total", 0, 0),
        ("process_cpu_ns_total", 10**10, round(busy * 10**10)),
    ]
    names, ts_ns, values = zip(*[row for row in rows if row[2] is not None], strict=True)
    return {"rank": [0] * len(names), "ts_ns": ts_ns, "name": names, "value": values}


def judged(tmp_path, *operators, is_recorded=True, **how):
    tables = {"counters": counters(**how)} if is_recorded else None
    return idle_cores.check(
        training(tmp_path, lengths_us=LENGTHS_US, tables=tables, forward=list(operators or [MM]))
    )


def test_one_thread_beside_an_idle_core(tmp_path):
    verdict = judged(tmp_path)
    assert isinstance(verdict, Finding) and not verdict.is_certain
    # A product of 800 us takes 469 us on two cores, and 4 us to start.
    assert verdict.share == pytest.approx((800 - 469 - 4) / 2000, abs=0.005)
    assert verdict.fixes[0] == "Call `torch.set_num_threads(2)` before the training loop"
    assert verdict.title.startswith("Training leaves 1 core idle, which costs about 1")
    assert verdict.why.startswith("PyTorch computes with 1 thread on here. With 2 threads per rank")


def test_more_cores_gain_more_but_not_in_proportion(tmp_path):
    two = judged(tmp_path / "two")
    eight = judged(tmp_path / "eight", cores=8, physical=8)
    assert two.expected_speedup < eight.expected_speedup
    assert eight.fixes[0].startswith("Call `torch.set_num_threads(8)`")
    assert eight.title.startswith("Training leaves 7 cores idle")
    assert eight.share < 800 / 2000 * (1 - 1 / 8)


def test_cores_that_others_use_are_not_idle(tmp_path):
    assert isinstance(judged(tmp_path, busy=1.6), Clear)


def test_hyperthreads_are_no_cores(tmp_path):
    assert isinstance(judged(tmp_path, threads=2, cores=4, physical=2, busy=2.0), Clear)


def test_operators_that_are_short_or_run_on_one_thread_gain_nothing(tmp_path):
    short = [Op("aten::mm", 15, [[8, 8]]) for _ in range(50)]
    assert isinstance(judged(tmp_path / "short", *short), Clear)
    assert isinstance(judged(tmp_path / "serial", Op("aten::sort", 800)), Clear)


def test_what_was_not_recorded_cannot_be_told(tmp_path):
    assert isinstance(judged(tmp_path / "a", is_recorded=False), CannotTell)
    assert isinstance(judged(tmp_path / "b", physical=None), CannotTell)


def test_other_frameworks_do_not_say_how_many_threads_they_use(tmp_path):
    drawn = training(tmp_path, lengths_us=LENGTHS_US, forward=[MM])
    drawn.run.manifest.ranks[0].frameworks["jax"] = "0.10.2"
    verdict = idle_cores.check(drawn)
    assert isinstance(verdict, CannotTell) and "known only for PyTorch" in verdict.reason
