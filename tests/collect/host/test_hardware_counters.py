import errno

import pytest

from strobe.collect.host import hardware_counters
from strobe.model.options import Options


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, []),
        ({"hardware_metrics": "pipeline"}, ["pipeline"]),
        ({"hardware_metrics": "all"}, ["pipeline", "cache", "branches"]),
        ({"l2_cache": True}, ["cache"]),
        ({"l2_cache": True, "hardware_metrics": "branches"}, ["branches", "cache"]),
        ({"l2_cache": True, "hardware_metrics": "all"}, ["pipeline", "cache", "branches"]),
    ],
)
def test_which_groups_are_asked_for(given: dict, expected: list[str]):
    assert hardware_counters.groups(Options(**given)) == expected


@pytest.mark.slow
@pytest.mark.timing("the kernel counts for this process now")
def test_the_kernel_counts_or_says_why_not():
    counters = hardware_counters.Counters(["pipeline"])
    before = counters.read()
    sum(range(10**6))
    after = counters.read()
    assert before.keys() == after.keys()
    for name in after:
        assert after[name] > before[name], name
    names = set(hardware_counters._EVENTS["pipeline"])
    assert after.keys() | set(counters._errors) == names
    assert bool(counters.refused) == bool(names - after.keys())


@pytest.mark.slow
@pytest.mark.timing("the kernel counts for this process now")
def test_what_other_threads_do_is_counted():
    import threading

    counters = hardware_counters.Counters(["pipeline"])
    before = counters.read().get("task_clock_ns_total")
    if before is None:
        pytest.skip(counters.refused)
    worker = threading.Thread(target=lambda: sum(range(3 * 10**6)))
    worker.start()
    worker.join()
    own = hardware_counters.Counters(["pipeline"])
    sum(range(10**5))
    assert counters.read()["task_clock_ns_total"] - before > own.read()["task_clock_ns_total"]


@pytest.mark.parametrize(
    "code, said",
    [
        (errno.EACCES, "sysctl kernel.perf_event_paranoid"),
        (errno.ENOENT, "virtual machines"),
        (errno.ENOSYS, "no perf_event_open"),
    ],
)
def test_the_reason_says_what_to_do(code: int, said: str):
    assert said in hardware_counters._why({code})


def test_kernels_are_measured_only_where_there_is_a_device():
    torch = pytest.importorskip("torch")
    options = Options(hardware_metrics="all")
    if not torch.cuda.is_available():
        assert hardware_counters.of_kernels(torch, options) == {}

    class WithDevice:
        _C = torch._C

        class cuda:
            is_available = staticmethod(lambda: True)

    assert "experimental_config" in hardware_counters.of_kernels(WithDevice, options)
    assert hardware_counters.of_kernels(WithDevice, Options()) == {}
    assert (
        hardware_counters.of_kernels(
            WithDevice, Options(**{**vars(options), "profile_device": False})
        )
        == {}
    )
