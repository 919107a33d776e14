"""Work and shapes of operators, with graphs and without, against arithmetic by hand."""

from pathlib import Path

import pytest
from tests.frameworks import environment
from tests.frameworks.mindspore.tables import sql

SCRIPT = Path(__file__).parent / "trainings" / "convolutions.py"
BATCH = 4

# Work of a forward pass, two operations for each value of the output and each of its inputs.
FORWARD = {
    "lenet": {
        "conv1": 2 * BATCH * 6 * 28 * 28 * (1 * 5 * 5),
        "conv2": 2 * BATCH * 16 * 10 * 10 * (6 * 5 * 5),
        "fc1": 2 * BATCH * 400 * 120,
        "fc2": 2 * BATCH * 120 * 84,
        "fc3": 2 * BATCH * 84 * 10,
    },
    "block": {
        "conv1": 2 * BATCH * 16 * 8 * 8 * (8 * 3 * 3),
        "conv2": 2 * BATCH * 16 * 8 * 8 * (16 // 4 * 3 * 3),
        "down": 2 * BATCH * 16 * 8 * 8 * (8 * 1 * 1),
        "head": 2 * BATCH * 1024 * 10,
    },
}


@pytest.mark.parametrize("net", FORWARD)
@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_work_of_convolutions_and_products(tmp_path, net, mode):
    plain = environment.run("mindspore", SCRIPT, net, "--mode", mode, timeout_s=300, cwd=tmp_path)
    done = environment.run(
        "mindspore", "-m", "strobe", "run", "-q", "-o", tmp_path / "run", SCRIPT, net,
        "--mode", mode, timeout_s=300, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0 and "internal error of Strobe" not in done.stderr, done.stderr
    assert done.stdout == plain.stdout != ""  # the same losses, bit for bit
    operators = sql(
        tmp_path / "run",
        "select e.step, e.name, e.scope, a.flops, a.is_backward from events e join op_args a"
        " on a.event_id = e.id where e.kind = 'op' and e.step between 6 and 10"
        " and (e.name like 'Conv2D%' or e.name = 'MatMul') order by e.ts_ns",
    )
    modules = [(row["scope"] or "").rpartition(".")[2] for row in operators]
    forward = [
        (row["step"], module, row["flops"])
        for row, module in zip(operators, modules, strict=True)
        if module and not row["is_backward"]
    ]
    work = FORWARD[net]
    assert forward == [(step, *each) for step in range(6, 11) for each in work.items()]
    # Every layer once for its weights, and all but those that are given the data for its input.
    data = ["conv1"] if net == "lenet" else ["conv1", "down"]
    layers = [*work, *(name for name in work if name not in data)]
    backward = [
        (module, row["flops"])
        for row, module in zip(operators, modules, strict=True)
        if row["is_backward"] and row["step"] == 8
    ]
    if mode == "graph":  # which gives the gradients of convolutions that are alike one module
        assert sorted(flops for _, flops in backward) == sorted(work[name] for name in layers)
    else:
        assert sorted(backward) == sorted((name, work[name]) for name in layers)
