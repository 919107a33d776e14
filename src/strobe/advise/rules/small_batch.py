"""Batches are so small that overhead takes most of the step.

## What it is
Every step has a fixed cost: calling each operator, building the graph for the backward pass,
updating the parameters, and the Python code of the loop. With few samples per batch, this cost is
paid for little arithmetic. Larger batches would train on the same samples much faster.

## How it is judged
The step is divided into work that grows with the batch and the rest, which does not. The work that
grows is getting the data, the arithmetic of products and convolutions at 40 FLOP per ns, and every
other long operator as a whole. A finding needs at most 8 samples per batch, a rest of at least 60%,
and a gain of at least 1.5x with 32 samples per batch. Python loops over tiny operators are judged
by `tiny-operators`. On devices, `device-idle` and `host-gap` judge the same.

The speedup is that of an epoch: a step with more samples takes longer, but there are fewer steps.
The estimate is cautious: for a small classifier it was 2.3x to 3.1x on a busy machine, where a gain
of 5.0x was measured.

## How to fix
Train with a larger batch. The learning rate usually has to grow with it. Check that the model
learns as well as before, because this changes the training, unlike most other fixes. If a small
batch is needed, `torch.compile` reduces the cost of calls.
"""

import json
from collections import Counter

import numpy as np

from strobe.advise.evidence.operator_times import (
    FLOPS_PER_NS,
    OperatorCost,
    operator_costs,
    undisturbed_ns,
    why_not,
)
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import count, percent

NAME = "small-batch"

LARGEST_BATCH = 8
PROPOSED_BATCH = 32
OVERHEAD_RATIO = 0.6
SMALLEST_SPEEDUP = 1.5
# If an operator without known FLOPs takes longer than this, its time is not only that of the call.
LONG_NS = 30_000
# This part of the layers must agree on the number of samples.
AGREED_RATIO = 0.8


def check(training: Training) -> Verdict:
    if training.has_devices:
        return Clear(message("small-batch.on-device"))
    if unknown := why_not(training):
        return unknown
    if training.runs_programs:
        return Clear(message("small-batch.compiled"))
    costs = operator_costs(training)
    batch = _batch_from_loader(training) or _batch_from_shapes(costs)
    if batch is None:
        return CannotTell(message("small-batch.unknown"), message("small-batch.use-loader"))
    samples = _samples(batch)
    if batch > LARGEST_BATCH:
        return Clear(message("small-batch.large", samples=samples))
    step_ns = undisturbed_ns(training, costs)
    work_ns = min(step_ns, _work_ns(training, costs))
    rest = 1 - work_ns / step_ns
    growth = PROPOSED_BATCH / batch
    speedup = growth * step_ns / (step_ns - work_ns + growth * work_ns)
    work = percent(1 - rest)
    if rest < OVERHEAD_RATIO or speedup < SMALLEST_SPEEDUP:
        return Clear(message("small-batch.mostly-work", samples=samples, work=work))
    return Finding(
        title=message("small-batch.title", samples=samples, overhead=percent(rest)),
        why=message("small-batch.why", work=work),
        share=1 - 1 / speedup,
        expected_speedup=speedup,
        fixes=(
            message("small-batch.larger-batch", batch=count(PROPOSED_BATCH)),
            fix("compile-calls", training.framework),
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in costs[:5])),),
        is_certain=False,
    )


def _samples(batch: int) -> Message:
    if batch == 1:
        return message("small-batch.one-sample")
    return message("small-batch.samples", count=count(batch))


def _work_ns(training: Training, costs: list[OperatorCost]) -> float:
    """The part of a step that grows with the batch."""
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
    """The first dimension of the inputs of layers, if the layers agree."""
    found: Counter[int] = Counter()
    for cost in costs:
        if cost.direction == "forward" and (size := _first_dimension(cost)):
            found[size] += 1
    if not found:
        return None
    size, layers = found.most_common(1)[0]
    return size if layers >= AGREED_RATIO * found.total() else None


def _first_dimension(cost: OperatorCost) -> int | None:
    """That of the input of a convolution, or of a linear layer with two dimensions: with more, the
    first one may be the time of a sequence."""
    try:
        shape = json.loads(cost.input_shapes or "[]")[0]
    except (ValueError, IndexError):
        return None
    if not isinstance(shape, list):
        return None
    is_rows = cost.type == "linear" and len(shape) == 2
    is_images = cost.type in ("conv1d", "conv2d", "conv3d") and len(shape) >= 3
    return int(shape[0]) if is_rows or is_images else None
