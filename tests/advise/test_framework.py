"""Which framework a run trains with."""

import pytest

from strobe.advise.framework import framework_of
from strobe.frameworks import JAX, MEGENGINE, MINDSPORE, TORCH, UNKNOWN
from strobe.store.run import Run
from tests.advise.drawings import steps
from tests.helpers import make_run


def drawn(tmp_path, frameworks: set[str], more: str = "") -> Run:
    run = make_run(tmp_path, steps(*[{"gap": 10, "forward": 90}] * 20) + more)
    run.manifest.ranks[0].frameworks = dict.fromkeys(frameworks, "1.0")
    return run


@pytest.mark.parametrize(
    ("frameworks", "speaks"),
    [
        (set(), UNKNOWN),
        ({"CANN"}, UNKNOWN),
        ({"torch"}, TORCH),
        ({"torch_npu", "CANN"}, TORCH),
        ({"jax"}, JAX),
        ({"mindspore"}, MINDSPORE),
        ({"megengine"}, MEGENGINE),
        ({"jax", "torch"}, TORCH),
    ],
)
def test_the_framework_is_the_one_that_run_json_names(tmp_path, frameworks, speaks):
    assert framework_of(drawn(tmp_path, frameworks)) == speaks


@pytest.mark.parametrize(
    ("event", "frameworks", "speaks"),
    [
        ("op:aten::mm", set(), TORCH),
        ("runtime:PjitFunction(train_step)", set(), JAX),
        ("op:Default/network-Net/MatMul-op1", set(), MINDSPORE),
        ("op:MatMul", set(), UNKNOWN),
        ("runtime:PjitFunction(train_step)", {"jax", "torch"}, JAX),
        ("op:aten::mm", {"jax", "torch"}, TORCH),
        ("op:aten::mm", {"mindspore"}, MINDSPORE),
    ],
)
def test_or_the_one_whose_operators_were_recorded(tmp_path, event, frameworks, speaks):
    run = drawn(tmp_path, frameworks, f"0/main {event} 0..10 step=1")
    assert framework_of(run) == speaks


def test_of_two_imported_the_one_that_runs_compiled_programs_trains(tmp_path):
    program = "0/compiled~programs runtime:train_step 0..10 step=1"
    assert framework_of(drawn(tmp_path, {"torch", "mindspore"}, program)) == MINDSPORE
