"""The gradient of a large embedding is a full table, though a batch uses few of its rows.

## What it is
A step looks up a few thousand rows of an embedding with many thousands of them. By default its
gradient is as large as the table: it is filled with zeros, the few rows are added, and the
optimizer goes through all of it, in every step. The time of the step then depends on the size of
the table, not on the size of the batch.

## How it is judged
From the shapes of the operators recorded in full: how many rows the table has, and how many are
looked up in a step. A table with at least 30 times as many rows as lookups counts. The cost is
what the backward pass of the embedding takes for the whole table, and what the update takes for
parameters of that shape. A part of it stays, in proportion to the rows that are used.

## How to fix
`torch.nn.Embedding(..., sparse=True)`, with an optimizer that takes sparse gradients: `SparseAdam`,
`Adagrad` or `SGD` without weight decay. Several optimizers can share a model: one for the
embeddings, one for the rest. `SparseAdam` changes the moments of the rows in the batch only, so
training is not quite the same as with `Adam`. `clip_grad_norm_` fails on sparse gradients: leave
the embedding out of it.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from strobe.advise.evidence.operator_times import (
    OperatorCost,
    bare,
    operator_costs,
    undisturbed_ns,
    why_not,
)
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.framework import TORCH
from strobe.advise.training import Training
from strobe.units import count, percent

NAME = "dense-gradients"

WORTH_TELLING_RATIO = 0.05
# Of a smaller table a good part of the rows is used, and sparse gradients cost more for each.
FEWEST_ROWS_PER_LOOKUP = 30
# A row of a sparse gradient is sorted, summed and scattered: its cost, in rows of a dense one.
SPARSE_ROW_COST = 4
_CLIPPING = (
    "If gradients are clipped, clip those of the other parameters only: "
    "torch.nn.utils.clip_grad_norm_ fails on sparse gradients"
)
# Optimizers of torch that take sparse gradients as they are.
_TAKES_SPARSE = ("SparseAdam", "Adagrad", "SGD")


@dataclass(frozen=True)
class _Table:
    scope: str
    shape: tuple[int, ...]
    lookups: float  # a step


def check(training: Training) -> Verdict:
    if training.framework != TORCH:
        return Clear("no embedding of PyTorch is trained")
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    step_ns = undisturbed_ns(training, costs)
    tables = [t for t in _tables(costs) if t.shape[0] >= FEWEST_ROWS_PER_LOOKUP * t.lookups]
    counted = [(cost, saved) for cost in costs if (saved := _saved_ns(cost, tables)) > 0]
    share = min(0.95, sum(saved for _, saved in counted) / step_ns)
    # Without a backward operator of that size, its gradient is sparse, or not needed.
    is_dense = any(cost.direction == "backward" for cost, _ in counted)
    if not is_dense:
        return Clear("no embedding has a gradient that is mostly zero")
    if share < WORTH_TELLING_RATIO:
        return Clear(f"gradients of embeddings that are mostly zero cost {percent(share)}")
    largest = max(tables, key=lambda table: math.prod(table.shape))
    rows = sorted(counted, key=lambda one: -one[1])[:5]
    return Finding(
        title=f"The gradient of {largest.scope} has {count(largest.shape[0])} rows, of which a "
        f"step uses {count(largest.lookups)} at most: filling and applying it takes about "
        f"{percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_fixes(training),
        evidence=(Evidence("operators", tuple(cost.row() for cost, _ in rows)),),
        where=largest.scope,
        is_certain=False,
    )


def _fixes(training: Training) -> tuple[str, ...]:
    optimizer = _optimizer(training)
    sparse = "Set sparse=True on the embedding: torch.nn.Embedding(..., sparse=True)"
    if optimizer in _TAKES_SPARSE:
        return (f"{sparse}; {optimizer} takes sparse gradients if weight_decay is 0", _CLIPPING)
    return (
        f"{sparse}, and train it with an optimizer of its own: torch.optim.SparseAdam(embedding."
        "parameters()), which changes the rows of the batch only",
        "Or train it with torch.optim.Adagrad or SGD, which take sparse gradients too",
        _CLIPPING,
    )


def _optimizer(training: Training) -> str | None:
    rows = training.rows("SELECT details FROM places WHERE what = 'update' ORDER BY rank, number")
    details = json.loads(rows[0]["details"] or "{}") if rows else {}
    return details.get("optimizer")


def _tables(costs: list[OperatorCost]) -> list[_Table]:
    """Embeddings that the forward pass looks rows up in."""
    found: dict[tuple[str, tuple[int, ...]], float] = {}
    for cost in costs:
        if bare(cost.name) != "embedding" or cost.direction == "backward":
            continue
        match _shapes(cost):
            case [[int() as rows, int() as width], list() as indices, *_]:
                key = (cost.scope or "an embedding", (rows, width))
                found[key] = found.get(key, 0.0) + cost.calls * math.prod(indices)
    return [_Table(scope, shape, lookups) for (scope, shape), lookups in found.items()]


def _saved_ns(cost: OperatorCost, tables: list[_Table]) -> float:
    """What a sparse gradient spares of this operator in a step."""
    shapes = _shapes(cost)
    of_table = [table for table in tables if [*table.shape] in shapes]
    if not of_table or cost.direction not in ("backward", "update"):
        return 0.0
    if cost.direction == "backward" and bare(cost.cause) != "embedding":
        return 0.0
    table = min(of_table, key=lambda table: table.shape[0] / max(1.0, table.lookups))
    left = min(1.0, SPARSE_ROW_COST * table.lookups / table.shape[0])
    return cost.cost_ns * (1 - left)


def _shapes(cost: OperatorCost) -> list[Any]:
    shapes: list[Any] = json.loads(cost.input_shapes or "[]")
    return shapes
