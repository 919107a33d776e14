import json

import pytest

from strobe.advise.evidence import single_operations
from strobe.advise.finding import Finding
from strobe.advise.training import Training
from strobe.model.journal import SINGLE_OPERATIONS
from tests.advise.drawings import same, steps
from tests.helpers import make_run


def called_one_by_one(folder, calls, *, in_jax):
    """20 steps of 1 ms, 0.6 of it gap, with a look in each; so many operations in every step."""
    count = 23
    drawing = steps(*same({"gap": 600, "forward": 400}, count))
    line = ["/job/train.py", 32, "<lambda>"]
    stack = [["/lib/site-packages/jax/_src/ufuncs.py", 7, "multiply"], line] if in_jax else [line]
    looks = {
        "rank": [0] * count, "ts_ns": [n * 1_000_000 + 500_000 for n in range(count)],
        "thread": ["training"] * count, "place": ["train.py:32"] * count,
        "stack": [json.dumps(stack)] * count, "function": ["<lambda>"] * count,
        "cpu_ns": [n * 1_000_000 for n in range(count)], "waited_ns": [0] * count,
    }  # fmt: skip
    counted = {
        "rank": [0] * count, "ts_ns": [n * 1_000_000 + 900_000 for n in range(count)],
        "name": [SINGLE_OPERATIONS] * count, "value": [float(calls * n) for n in range(count)],
    }  # fmt: skip
    run = make_run(folder, drawing, {"samples": looks, "counters": counted})
    return single_operations.check(Training(run))


def test_operations_called_one_by_one_beside_a_compiled_program(tmp_path):
    verdict = called_one_by_one(tmp_path, 600, in_jax=True)
    assert isinstance(verdict, Finding) and abs(verdict.share - 0.6) < 0.01
    assert verdict.title == (
        "Calling 600 operations per step outside the compiled program takes 60% of step time."
    )
    assert "at train.py:32" in verdict.fixes[0]
    assert verdict.where == "train.py:32"


def test_a_few_of_them_or_python_beside_them_is_no_fault(tmp_path):
    assert called_one_by_one(tmp_path / "few", 20, in_jax=True) is None
    assert called_one_by_one(tmp_path / "python", 600, in_jax=False) is None


@pytest.mark.parametrize(("flops", "left_us"), [(None, 15), (1_000_000, 60)])
def test_where_calls_were_recorded_they_tell_and_what_they_compute_is_not_lost(
    tmp_path, flops, left_us
):
    """Steps of 1 ms: in the window calls fill 500 us of a gap of 600, and operators run for 60. Of
    those on elements a quarter is left in a compiled program, of products all."""
    count = 23
    drawing = steps(*same({"gap": 600, "forward": 400}, count), window=(6, 10))
    lines = []
    for step in range(6, 11):
        began = (step - 1) * 1_000_000
        lines += [f"0/python runtime:multiply {at}..{at + 10_000} step={step}"
                  for at in range(began, began + 400_000, 20_000)]  # fmt: skip
        lines.append(f"0/XLA op:multiply {began + 5_000}..{began + 65_000} step={step}")
    counted = {
        "rank": [0] * count, "ts_ns": [n * 1_000_000 + 900_000 for n in range(count)],
        "name": [SINGLE_OPERATIONS] * count, "value": [600.0 * n for n in range(count)],
    }  # fmt: skip
    ids = list(range(1000))
    args = {"event_id": ids, "is_backward": [False] * 1000, "flops": [flops] * 1000}
    extra = {"counters": counted, "op_args": args}
    run = make_run(tmp_path, drawing + "\n".join(lines), extra)
    verdict = single_operations.check(Training(run))
    # The last call of a step ends at 390 us, and Python after it takes no more than 100.
    assert isinstance(verdict, Finding) and verdict.share == pytest.approx((490 - left_us) / 1000)
