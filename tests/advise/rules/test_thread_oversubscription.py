import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import thread_oversubscription
from strobe.advise.training import Training
from strobe.model.journal import NO_CORE_COUNTER
from tests.advise.drawings import of_framework, same, steps
from tests.helpers import make_run

STEPS = steps(*same({"forward": 100_000}, 20))


def judged(tmp_path, *, threads=8, cores=2, forced=2000, busy=1.9, is_told=True, no_core=0):
    """Ten seconds in which the process computed for `busy` cores, and the training thread waited
    for a core for this part of the time."""
    rows = [
        ("cores_usable_milli", 0, cores * 1000),
        ("process_cpu_ns_total", 0, 1e9),
        ("process_cpu_ns_total", 10e9, 1e9 + busy * 10e9),
        ("context_switches_forced_total", 0, 100),
        ("context_switches_forced_total", 10e9, 100 + forced),
    ]
    rows += [("intra_op_threads", 0, threads)] if is_told else []
    if no_core:
        rows += [(NO_CORE_COUNTER, 0, 0), (NO_CORE_COUNTER, 10e9, no_core * 10e9)]
        rows += [("cores_busy_milli", 10e9, busy * 1000)]
    names, ts_ns, values = zip(*rows, strict=True)
    extra = {"counters": {
        "rank": [0] * len(rows), "ts_ns": [int(t) for t in ts_ns], "name": list(names),
        "value": list(values),
    }}  # fmt: skip
    return thread_oversubscription.check(Training(of_framework(make_run(tmp_path, STEPS, extra))))


def test_more_threads_than_cores_that_compete(tmp_path):
    verdict = judged(tmp_path)
    assert isinstance(verdict, Finding) and not verdict.is_certain
    assert verdict.title == (
        "PyTorch computes with too many threads (8 for 2 cores), which costs about 35% of step "
        "time."
    )
    assert verdict.why == (
        "On here, the operating system preempts these threads 200 times per second."
    )
    assert verdict.fixes[0] == "Call `torch.set_num_threads(2)` before the training loop"
    assert verdict.share == dict(thread_oversubscription.COSTS)[4.0]


def test_the_cost_is_the_wait_for_a_core_where_that_was_recorded(tmp_path):
    verdict = judged(tmp_path, no_core=0.6)
    assert isinstance(verdict, Finding) and abs(verdict.share - 0.6) < 1e-6
    assert abs(verdict.expected_speedup - 2.5) < 1e-5
    assert verdict.speedup_range == pytest.approx((0.8 * 2.5, 1.3 * 2.5))


def test_the_cost_grows_with_the_threads(tmp_path):
    shares = [judged(tmp_path / str(n), threads=n).share for n in (4, 6, 8, 16, 64)]
    assert shares == sorted(shares) and shares[0] < shares[-1] <= 0.5


def test_threads_that_fit_are_idle_or_left_alone_are_clear(tmp_path):
    assert isinstance(judged(tmp_path / "a", threads=2), Clear)
    assert isinstance(judged(tmp_path / "b", busy=0.3), Clear)
    assert isinstance(judged(tmp_path / "c", forced=200), Clear)


def test_a_quota_counts_as_cores(tmp_path):
    assert isinstance(judged(tmp_path, threads=1, cores=0.5), Finding)


def test_ranks_on_one_machine_share_its_cores(tmp_path):
    both = STEPS + steps(*same({"forward": 100_000}, 20), rank=1)
    run = make_run(tmp_path, both, {"counters": _both_ranks()})
    verdict = thread_oversubscription.check(Training(run))
    assert isinstance(verdict, Finding)
    assert "(4 for 2 cores)" in verdict.title
    assert verdict.why.startswith("On here, 2 ranks share the cores")
    assert verdict.fixes[1] == "Set `OMP_NUM_THREADS=1` in the environment"


def _both_ranks() -> dict:
    rows = [
        (rank, name, ts_ns, value)
        for rank in (0, 1)
        for name, ts_ns, value in (
            ("cores_usable_milli", 0, 2000), ("intra_op_threads", 0, 2),
            ("process_cpu_ns_total", 0, 0), ("process_cpu_ns_total", 10**10, 9 * 10**9),
            ("context_switches_forced_total", 0, 0),
            ("context_switches_forced_total", 10**10, 3000),
        )
    ]  # fmt: skip
    ranks, names, ts_ns, values = zip(*rows, strict=True)
    return {"rank": ranks, "name": names, "ts_ns": ts_ns, "value": values}


def test_what_was_not_recorded_cannot_be_told(tmp_path):
    assert isinstance(judged(tmp_path, is_told=False), CannotTell)


def test_frameworks_that_do_not_tell_are_not_asked_for_torchs_threads(tmp_path):
    run = make_run(tmp_path, STEPS)
    run.manifest.ranks[0].frameworks["jax"] = "0.10.2"
    verdict = thread_oversubscription.check(Training(run))
    assert isinstance(verdict, CannotTell) and "known only for PyTorch" in verdict.reason
