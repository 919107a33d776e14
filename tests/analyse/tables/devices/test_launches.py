import pytest

from strobe.analyse.tables.devices import launches
from tests.analyse.drawings import DEVICE
from tests.helpers import make_run, text


def test_delays_and_short_kernels_by_kernel_and_call(tmp_path):
    found = launches.run(make_run(tmp_path, DEVICE)).project(
        "name, launch, calls, total_ns, launch_ns, delay_mean_ns, delay_max_ns, queued_ns,"
        "short_calls, max_length"
    )
    # The second gemm has no launch. add: called 140..180, runs 320..340, while gemm was running.
    assert text(found) == (
        "name launch calls total_ns launch_ns delay_mean_ns delay_max_ns queued_ns short_calls"
        " max_length\n"
        "nccl cudaLaunchKernel 1 350 60 220 220 160 0 1\n"
        "add cudaLaunchKernel 1 20 40 180 180 140 1 1\n"
        "gemm cudaLaunchKernel 1 200 20 40 40 20 0 1\n"
        "copy cudaMemcpyAsync 1 100 10 200 200 190 0 2"
    )


def test_a_call_that_launches_several_is_divided_among_them(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main       runtime:cudaGraphLaunch  0..90
        0/s7@cuda:0  kernel:a                 100..120  launcher=0
        0/s7@cuda:0  kernel:a                 130..200  launcher=0
        0/s7@cuda:0  kernel:b                 200..300  launcher=0
        """,
    )
    found = launches.run(run).project(
        "name, calls, launch_ns, launch_mean_ns, short_calls, mean_length, delay_median_ns"
    )
    assert text(found) == (
        "name calls launch_ns launch_mean_ns short_calls mean_length delay_median_ns\n"
        "a 2 60 30 1 1.5 115\n"
        "b 1 30 30 0 3.0 200"
    )


@pytest.mark.parametrize("all_steps, calls", [(False, 1), (True, 2)])
def test_steps_recorded_in_part_count_only_when_asked_for(tmp_path, all_steps, calls):
    drawing = """
        0/steps      annotation:strobe~window~1  0..150
        0/steps      step:step~1    0..100    step=1
        0/steps      step:step~2    100..200  step=2
        0/main       runtime:launch 90..95    step=1
        0/main       runtime:launch 120..125  step=2
        0/s7@cuda:0  kernel:k       110..130  step=2  launcher=3
        0/s7@cuda:0  kernel:k       130..140  step=2  launcher=4
    """
    run = make_run(tmp_path, drawing)
    assert launches.run(run, all_steps=all_steps).project("calls").fetchall() == [(calls,)]
