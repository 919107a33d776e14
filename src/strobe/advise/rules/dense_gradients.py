"""The gradient of a large embedding is a full table, although a batch uses few of its rows.

## What it is
A step looks up a few thousand rows of an embedding that has many thousands of them. By default, the
gradient is as large as the table. In every step it is filled with zeros, the few rows are added,
and the optimizer updates all rows. The time of a step then depends on the size of the table, not on
the size of the batch.

## How it is judged
The shapes of the operators recorded in full show how many rows the table has, and how many are
looked up in a step. A table counts if it has at least 30 times as many rows as lookups. The cost is
the time of the embedding's backward pass for the whole table, and of the update for parameters of
that shape. A part of it remains, in proportion to the rows that are used.

## How to fix
Use `torch.nn.Embedding(..., sparse=True)` with an optimizer that takes sparse gradients:
`SparseAdam`, `Adagrad`, or `SGD` without weight decay. Several optimizers can share a model: one
for the embeddings, one for the rest. `SparseAdam` changes only the moments of the rows in the
batch, so training is not quite the same as with `Adam`. `clip_grad_norm_` fails on sparse
gradients, so leave the embedding out of it.
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
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import count, percent

NAME = "dense-gradients"

# A large part of the rows of a smaller table is used, and a row of a sparse gradient costs more.
FEWEST_ROWS_PER_LOOKUP = 30
# The cost of a row of a sparse gradient (which is sorted, summed and scattered) in rows of a dense
# one.
SPARSE_ROW_COST = 4


@dataclass(frozen=True)
class _Table:
    scope: str
    shape: tuple[int, ...]
    lookups: float  # per step


def check(training: Training) -> Verdict:
    if not training.framework.sparse_optimizers:
        return Clear(message("dense-gradients.other-framework"))
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    step_ns = undisturbed_ns(training, costs)
    tables = [t for t in _tables(costs) if t.shape[0] >= FEWEST_ROWS_PER_LOOKUP * t.lookups]
    counted = [(cost, saved) for cost in costs if (saved := _saved_ns(cost, tables)) > 0]
    share = min(MOST_ESTIMATED, sum(saved for _, saved in counted) / step_ns)
    # Without a backward operator of that size, the gradient is sparse or not needed.
    is_dense = any(cost.direction == "backward" for cost, _ in counted)
    if not is_dense:
        return Clear(message("dense-gradients.none"))
    if share < SMALLEST_SHARE:
        return Clear(message("dense-gradients.small", share=percent(share)))
    largest = max(tables, key=lambda table: math.prod(table.shape))
    rows = sorted(counted, key=lambda one: -one[1])[:5]
    return Finding(
        title=message("dense-gradients.title", scope=largest.scope, share=percent(share)),
        why=message(
            "dense-gradients.why", rows=count(largest.shape[0]), lookups=count(largest.lookups)
        ),
        share=share,
        expected_speedup=speedup(share),
        fixes=_fixes(training),
        evidence=(Evidence("operators", tuple(cost.row() for cost, _ in rows)),),
        where=largest.scope,
        is_certain=False,
    )


def _fixes(training: Training) -> tuple[Message, ...]:
    optimizer = _optimizer(training)
    clipping = message("dense-gradients.clipping")
    if optimizer in training.framework.sparse_optimizers:
        return (message("dense-gradients.sparse", optimizer=optimizer), clipping)
    return (
        message("dense-gradients.sparse-adam"),
        message("dense-gradients.other-optimizers"),
        clipping,
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
                key = (cost.scope or message("dense-gradients.an-embedding"), (rows, width))
                found[key] = found.get(key, 0.0) + cost.calls * math.prod(indices)
    return [_Table(scope, shape, lookups) for (scope, shape), lookups in found.items()]


def _saved_ns(cost: OperatorCost, tables: list[_Table]) -> float:
    """The time per step that a sparse gradient saves in this operator."""
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
