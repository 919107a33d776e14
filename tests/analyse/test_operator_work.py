import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from strobe.analyse.tables.devices import kernels
from strobe.analyse.tables.operators import operator_types, operators
from tests.helpers import make_run
from tests.ingest.imports import imported, shared

# A convolution that an inner operator computes, and one whose work two inner operators share.
CONVOLUTIONS = """
    0/main  op:conv       0..100
    0/main  op:mkldnn     10..90     parent=0
    0/main  op:empty      20..30     parent=1
    0/main  op:backward   200..300
    0/main  op:of_input   210..250   parent=3
    0/main  op:of_weight  250..290   parent=3
"""
ARGS = {"event_id": [0, 3], "flops": [700, 1000], "is_backward": [False, True]}


def test_flops_belong_to_the_operator_that_does_most_of_the_work(tmp_path):
    run = make_run(tmp_path, CONVOLUTIONS, {"op_args": ARGS})
    found = operators.run(run).project("name, flops, flops_per_s").fetchall()
    assert {name: (flops, rate) for name, flops, rate in found if flops} == {
        "mkldnn": (700, 700e9 / 80), "backward": (1000, 1e10),
    }  # fmt: skip
    by_type = dict(operator_types.run(run).project("name, flops").fetchall())
    assert by_type["mkldnn"] == 700 and by_type["conv"] is None and by_type["backward"] == 1000


def test_on_a_device_that_is_the_one_whose_kernels_ran_longest(tmp_path):
    run = make_run(
        tmp_path,
        """
        0/main       op:conv          0..500
        0/main       op:cudnn         10..40    parent=0
        0/main       runtime:launch   20..30    parent=1
        0/main       op:add_          50..60    parent=0
        0/main       runtime:launch   52..58    parent=3
        0/s7@cuda:0  kernel:conv      30..90    launcher=2
        0/s7@cuda:0  kernel:bias      90..100   launcher=4
        """,
        {"op_args": {"event_id": [0], "flops": [600], "is_backward": [False]}},
    )
    found = operators.run(run).project("name, device_ns, device_total_ns, flops, flops_per_s")
    assert found.fetchall() == [
        ("cudnn", 60, 60, 600, 1e10), ("add_", 10, 10, None, None), ("conv", 0, 70, None, None),
    ]  # fmt: skip


def test_a_real_trace_agrees_with_key_averages(tmp_path):
    """A mean calls itself; torch's table counts that once."""
    x = torch.randn(64, 64)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(5):
            x = x / x.mean() + (x @ x).softmax(0)
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    run = imported(path, tmp_path / "run")
    found = operator_types.run(run).project("name, calls, total_ns, self_ns").fetchall()
    theirs = {
        row.key: (row.count, round(row.cpu_time_total * 1e3), round(row.self_cpu_time_total * 1e3))
        for row in profiler.key_averages()
    }
    assert len(found) > 10
    assert {name: tuple(figures) for name, *figures in found} == {
        name: theirs[name] for name, *_ in found
    }
    run.close()


@pytest.mark.parametrize(
    "name", ["kineto/resnet50_num_workers_0.1623143089861.pt.trace.json.gz",
             "tracelens/h100_timesformer.json.gz"]
)  # fmt: skip
def test_operators_of_a_real_trace_have_the_time_of_its_kernels(tmp_path, name):
    """Every kernel of these traces was launched by an operator."""
    run = imported(shared(name), tmp_path)
    ((total,),) = kernels.run(run).aggregate("sum(total_ns)").fetchall()
    for table in (operators, operator_types):
        ((device_ns, share),) = table.run(run).aggregate("sum(device_ns), sum(share)").fetchall()
        assert device_ns == total and share == pytest.approx(1)
    ((most,),) = operators.run(run).aggregate("max(bytes_per_s)").fetchall()
    assert most < 4e12  # no device reads faster from its memory
    run.close()
