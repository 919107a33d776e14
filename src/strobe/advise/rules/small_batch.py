"""Batches are so small that overhead takes most of the step.

## What it is
Every step has a fixed cost: calling each operator, building the graph for the backward pass,
updating the parameters, the Python of the loop. With few samples per batch this cost is paid for
little arithmetic, and the same samples would be trained on much faster in larger batches.

## How it is judged
The step is divided into work that grows with the batch (getting the data, the arithmetic of
products and convolutions at 40 FLOP per ns, every other long operator as a whole) and the rest,
which does not. A finding needs at most 8 samples per batch, a rest of at least 60%, and a gain of
at least 1.5x from 32 samples per batch. Python loops over tiny operators are `tiny-operators`; on
devices `device-idle` and `host-gap` judge the same.

The speedup is that of an epoch: a step with more samples takes longer, but there are fewer steps.
The estimate is cautious: for a small classifier it was 2.3x to 3.1x on a busy machine, where a gain
of 5.0x was measured.

## How to fix
Train with a larger batch. The learning rate usually has to grow with it, and whether the model
learns as well has to be checked: this changes the training, unlike most other fixes. Where a small
batch is needed, `torch.compile` reduces the cost of calls.
"""

import json
from collections import Counter

import numpy as np

from strobe.advise.evidence.operator_times import (
    OperatorCost,
    operator_costs,
    undisturbed_ns,
    why_not,
)
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.units import count, percent

NAME = "small-batch"

LARGEST_BATCH = 8
PROPOSED_BATCH = 32
OVERHEAD_RATIO = 0.6
WORTH_TELLING_SPEEDUP = 1.5
# What one core does in products of this size; measured 40 to 75.
FLOPS_PER_NS = 40
# An operator without known FLOPs that takes longer than this is more than its call.
LONG_NS = 30_000
# The shapes of most layers must agree on the number of samples.
AGREED_RATIO = 0.8


def check(training: Training) -> Verdict:
    if training.has_devices:
        return Clear("a device computes: whether it waits for the host is told by device-idle")
    if unknown := why_not(training):
        return unknown
    if training.runs_programs:
        return Clear("compiled programs have no cost for each operator")
    costs = operator_costs(training)
    batch = _batch_from_loader(training) or _batch_from_shapes(costs)
    if batch is None:
        return CannotTell(
            "how many samples a batch has was not recorded",
            "use a DataLoader, or record a model with linear or convolutional layers",
        )
    if batch > LARGEST_BATCH:
        return Clear(f"batches have {count(batch)} samples")
    step_ns = undisturbed_ns(training, costs)
    work_ns = min(step_ns, _work_ns(training, costs))
    rest = 1 - work_ns / step_ns
    times = PROPOSED_BATCH / batch
    speedup = times * step_ns / (step_ns - work_ns + times * work_ns)
    samples = "1 sample" if batch == 1 else f"{batch} samples"
    if rest < OVERHEAD_RATIO or speedup < WORTH_TELLING_SPEEDUP:
        return Clear(f"batches have {samples}, and {percent(1 - rest)} of a step is their work")
    return Finding(
        title=f"batches of {samples}: {percent(rest)} of each step is overhead that does not "
        "depend on the size of the batch",
        share=1 - 1 / speedup,
        expected_speedup=speedup,
        fixes=(
            f"a batch size of {PROPOSED_BATCH}, with a learning rate to match: an epoch takes "
            "fewer steps; check that the model learns as well",
            "or torch.compile(model), which makes calls cheaper",
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in costs[:5])),),
        is_certain=False,
    )


def _work_ns(training: Training, costs: list[OperatorCost]) -> float:
    """What of a step grows with the batch."""
    data_ns = float(np.median(training.steps["gap_ns"]))
    return data_ns + sum(_operator_work_ns(cost) for cost in costs)


def _operator_work_ns(cost: OperatorCost) -> float:
    if cost.direction == "update":
        return 0.0
    if cost.flops:
        return cost.flops / FLOPS_PER_NS * cost.calls
    return cost.cost_ns if cost.cost_ns > LONG_NS * cost.calls else 0.0


def _batch_from_loader(training: Training) -> int | None:
    ((items,),) = training.run.sql("SELECT median(items) FROM batches").fetchall()
    return int(items) if items else None


def _batch_from_shapes(costs: list[OperatorCost]) -> int | None:
    """The first dimension of what layers work on, if they agree."""
    found: Counter[int] = Counter()
    for cost in costs:
        if cost.direction == "forward" and (size := _first_dimension(cost)):
            found[size] += 1
    if not found:
        return None
    size, layers = found.most_common(1)[0]
    return size if layers >= AGREED_RATIO * found.total() else None


def _first_dimension(cost: OperatorCost) -> int | None:
    """Of convolutions, and of linear layers on plain rows: sequences may have their time first."""
    try:
        shape = json.loads(cost.input_shapes or "[]")[0]
    except (ValueError, IndexError):
        return None
    if not isinstance(shape, list):
        return None
    is_rows = cost.type == "linear" and len(shape) == 2
    is_images = cost.type in ("conv1d", "conv2d", "conv3d") and len(shape) >= 3
    return int(shape[0]) if is_rows or is_images else None
