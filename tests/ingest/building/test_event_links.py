"""From hand-written windows to linked tables."""

import numpy as np

from strobe.ingest.building.event_links import steps_of
from strobe.ingest.building.opening import open_run_dir
from tests.helpers import text
from tests.ingest.runs import START_NS, op, plain_steps, write_raw, write_window

MODULES = {"1": {"path": "", "class": "Net"}, "2": {"path": "layers.0", "class": "Linear"}}
BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"


def opened(run, events, marks=(), **window):
    raw = write_raw(run, marks)
    write_window(raw, events, **window)
    return open_run_dir(run)


def test_backward_work_belongs_to_the_module_of_its_forward(tmp_path):
    run = opened(tmp_path, [
        op("strobe:1", 0, 50),
        op("strobe:2", 5, 40),
        op("aten::linear", 6, 30, **{"Sequence number": 7, "Fwd thread id": 0}),
        op("aten::addmm", 10, 20, **{"Sequence number": 7, "Fwd thread id": 0}),
        op("aten::relu", 42, 45, **{"Sequence number": 8, "Fwd thread id": 0}),
        op(BACKWARD, 60, 90, **{"Sequence number": 7, "Fwd thread id": 1}),
        op("AddmmBackward0", 61, 89, **{"Sequence number": 7, "Fwd thread id": 1}),
        op("aten::mm", 62, 70),
        op("aten::add_", 95, 97),
    ], modules=MODULES)  # fmt: skip
    events = run.sql(
        "SELECT e.name, kind, scope, is_backward AS back FROM events e"
        " LEFT JOIN op_args ON event_id = id ORDER BY id"
    )
    assert text(events) == (
        "name kind scope back\n"
        "Net module  -\n"
        "Linear module layers.0 -\n"
        "aten::linear op layers.0 False\n"
        "aten::addmm op layers.0 False\n"
        "aten::relu op  False\n"
        f"{BACKWARD} op layers.0 True\n"
        "AddmmBackward0 op layers.0 True\n"
        "aten::mm op layers.0 True\n"
        "aten::add_ op - False"
    )
    links = run.sql(
        "SELECT f.name AS f, b.name AS b, l.kind FROM links l"
        " JOIN events f ON from_id = f.id JOIN events b ON to_id = b.id"
    )
    assert text(links) == f"f b kind\naten::addmm {BACKWARD} forward_backward"


def test_sequence_numbers_are_those_of_the_thread_that_fits(tmp_path):
    forward = {"Fwd thread id": 0}
    other = {"tid": 78}
    run = opened(tmp_path, [
        op("strobe:1", 0, 50),
        op("aten::a", 1, 2, **{"Sequence number": 1}, **forward),
        op("aten::b", 3, 4, **{"Sequence number": 2}, **forward),
        {**op("aten::other", 5, 6, **{"Sequence number": 2}, **forward), **other},
        {**op("BBackward", 60, 61, **{"Sequence number": 2, "Fwd thread id": 5}), "tid": 90},
        {**op("ABackward", 62, 63, **{"Sequence number": 1, "Fwd thread id": 5}), "tid": 90},
    ], modules=MODULES)  # fmt: skip
    links = run.sql(
        "SELECT f.name AS f, b.name AS b FROM links l"
        " JOIN events f ON from_id = f.id JOIN events b ON to_id = b.id ORDER BY 1"
    )
    assert text(links) == "f b\naten::a ABackward\naten::b BBackward"


def test_all_work_of_autograds_own_thread_is_backward(tmp_path):
    """Also sums of gradients between its nodes; in 2021 the nodes had no other sign."""
    forward, node = ({"Sequence number": 7, "Fwd thread id": i} for i in (0, 1))
    autograd = {"tid": 90}
    run = opened(tmp_path, [
        op("aten::linear", 6, 30, **forward),
        {**op("AddmmBackward", 60, 70, **node), **autograd},
        {**op("aten::add", 71, 72), **autograd},
        {**op("torch::autograd::AccumulateGrad", 80, 90), **autograd},
        op("torch::autograd::AccumulateGrad", 100, 101),
        op("aten::item", 110, 111),
    ], modules=MODULES)  # fmt: skip
    rows = run.sql("SELECT name, is_backward FROM op_args JOIN events ON id = event_id ORDER BY id")
    assert rows.fetchall() == [
        ("aten::linear", False),
        ("AddmmBackward", True),
        ("aten::add", True),
        ("torch::autograd::AccumulateGrad", True),
        ("torch::autograd::AccumulateGrad", True),
        ("aten::item", False),
    ]


def test_kernels_know_their_launch_and_take_its_scope(tmp_path):
    stream = {"device": 0, "stream": 7}
    run = opened(tmp_path, [
        op("strobe:2", 0, 50),
        op("aten::mm", 5, 20, **{"External id": 3}),
        op("cudaLaunchKernel", 6, 8, "cuda_runtime", correlation=11),
        op("gemm", 30, 60, "kernel", correlation=11, grid=[1, 2, 3], block=[32, 1, 1], **stream),
        op("Memcpy", 70, 75, "gpu_memcpy", bytes=4096, **{"External id": 3}, **stream),
        op("lost", 80, 81, "kernel", correlation=98, **stream),
    ], modules=MODULES)  # fmt: skip
    table = run.sql(
        "SELECT k.name, k.kind, h.name AS launcher, k.scope, device, grid, a.bytes FROM events k"
        " JOIN kernel_args a ON a.event_id = k.id JOIN tracks t ON t.id = k.track_id"
        " LEFT JOIN events h ON h.id = k.launcher_id ORDER BY k.id"
    )
    assert text(table) == (
        "name kind launcher scope device grid bytes\n"
        "gemm kernel cudaLaunchKernel layers.0 cuda:0 [1, 2, 3] -\n"
        "Memcpy memcpy aten::mm layers.0 cuda:0 - 4096\n"
        "lost kernel - - cuda:0 - -"
    )


def test_events_lie_in_the_step_they_began_in(tmp_path):
    step = 80  # microseconds; the marks of a step are a tenth of that apart
    run = opened(
        tmp_path, [op("before", 0, 200), op("first", 10, 20), op("second", 1.0 + step, 100)],
        plain_steps(2),
    )  # fmt: skip
    table = run.sql("SELECT name, step FROM events WHERE kind IN ('op', 'step') ORDER BY id")
    assert text(table) == "name step\nbefore -\nstep 1 1\nfirst 1\nstep 2 2\nsecond 2"


def test_the_end_of_the_last_step_is_outside():
    found = steps_of(np.array([9, 10, 19, 20, 34, 35]), np.array([10, 20]), np.array([10, 15]))
    assert found.tolist() == [0, 1, 1, 2, 2, 0]


def test_garbled_names_come_back_and_unknown_modules_are_told(tmp_path):
    run = opened(
        tmp_path, [op("strobe#3", 0, 9, "user_annotation"), op("strobe:8", 1, 2)],
        modules=MODULES, names={"strobe#3": "前向"},
    )  # fmt: skip
    table = run.sql("SELECT name, kind, scope, ts_ns FROM events ORDER BY id")
    assert text(table) == "name kind scope ts_ns\n前向 annotation - 0\nstrobe:8 module - 1000"
    assert "without its name" in text(run.sql("SELECT what FROM problems"))
    assert run.manifest.started_unix_ns == START_NS
