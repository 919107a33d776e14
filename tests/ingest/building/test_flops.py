import json

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from strobe.ingest.building import nesting, shapes
from strobe.ingest.building.flops import counted_once, flops
from strobe.ingest.formats import kineto
from tests.ingest.traces import MODELS, one_step, record


def work_by_operator(path) -> dict[str, int]:
    """What we count in a trace, by the name of the operator."""
    trace = kineto.read(path)
    events = trace.events

    def argument(column, row):
        code = events.args[column][row]
        return shapes.parsed(trace.texts[code] if code >= 0 else None)

    names = [trace.names[code] for code in events.name]
    each = [
        flops(name, argument("dims", row), argument("concrete", row))
        for row, name in enumerate(names)
    ]
    work = np.array([-1 if count is None else count for count in each])
    parent = nesting.parents(events.thread, events.ts_ns, events.dur_ns)
    found: dict[str, int] = {}
    for name, count in zip(names, counted_once(work, parent).tolist(), strict=True):
        if count >= 0:
            found[name] = found.get(name, 0) + count
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_a_training_step_sums_to_what_flop_counter_mode_counts(tmp_path, kind):
    make, shape = MODELS[kind]
    model, x = make(), torch.randn(shape, requires_grad=kind == "cnn")
    with FlopCounterMode(display=False) as theirs:
        one_step(model, x)
    record(tmp_path / "trace.json", lambda: one_step(model, x))
    ours = work_by_operator(tmp_path / "trace.json")
    by_name = {f"aten::{op.__name__}": n for op, n in theirs.get_flop_counts()["Global"].items()}
    assert ours == by_name
    assert sum(ours.values()) == theirs.get_total_flops() > 1000


def test_attention_on_the_cpu_counts_as_attention_elsewhere(tmp_path):
    q, k, v = (torch.randn(2, 3, n, 8, requires_grad=True) for n in (5, 7, 7))
    record(tmp_path / "trace.json", lambda: scaled_dot_product_attention(q, k, v).sum().backward())
    name = "aten::_scaled_dot_product_flash_attention_for_cpu"
    assert work_by_operator(tmp_path / "trace.json") == {
        name: sdpa_flop_count(q.shape, k.shape, v.shape),
        f"{name}_backward": sdpa_backward_flop_count(q.shape, q.shape, k.shape, v.shape),
    }


def test_an_operator_that_was_not_recorded_in_full_has_no_count():
    assert flops("aten::mm", [], []) is None
    assert flops("aten::mm", [[2, 3], []], []) is None
    assert flops("aten::convolution", [[1, 2, 8], [2, 2, 3], []], []) is None
    assert flops("aten::relu", [[2, 3]], []) is None


def test_only_the_outermost_operator_keeps_the_work():
    work = np.array([-1, 100, 100, -1, 40, 7])
    parent = np.array([-1, 0, 1, 2, 3, 0])
    assert counted_once(work, parent).tolist() == [-1, 100, -1, -1, -1, 7]


def test_by_hand():
    assert flops("aten::mm", [[2, 3], [3, 5]], []) == 60
    assert flops("aten::baddbmm", [[1], [4, 2, 3], [4, 3, 5]], []) == 240
    concrete = json.loads('["", "", "", "[1]", "[0]", "[1]", "False", "[0]", "1"]')
    assert flops("aten::convolution", [[1, 2, 8], [3, 2, 3], []], concrete) == 2 * 6 * 3 * 2 * 3
