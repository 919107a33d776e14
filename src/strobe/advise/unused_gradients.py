"""Gradients are computed for parameters that no optimizer updates.

## What it is
Only some parameters are trained, for example the head of a pretrained model, and only these are
given to the optimizer. The others still have `requires_grad=True`, so the backward pass computes
their gradients in every step, and nobody uses them.

## How it is judged
Strobe notes which parameters of the model require gradients but belong to no optimizer that has
made an update. From the operators recorded it counts their part of the backward pass: all of it for
modules that run before the first one that is trained; for later ones half of each product or
convolution, because the gradient of their input is still needed. The forward pass gains as well,
which is not counted. A finding needs 5% of step time.

## How to fix
Freeze what is not trained, before the optimizer is made: `model.backbone.requires_grad_(False)`.
Where a frozen part comes first, call it under `torch.no_grad()`, which saves memory too. If these
parameters are meant to learn, give them to the optimizer.
"""

import json
from typing import Any

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.operator_times import OperatorCost, bare, operator_costs, undisturbed_ns, why_not
from strobe.advise.training import Lines, Training
from strobe.model.journal import UNTRAINED_PARAMETERS
from strobe.units import count, percent

NAME = "unused-gradients"

WORTH_TELLING_RATIO = 0.05
# Of the backward of a product, the part that the gradient of its weights takes.
WEIGHTS_RATIO = 0.5
_PRODUCTS = frozenset((
    "linear", "addmm", "mm", "bmm", "conv1d", "conv2d", "conv3d", "convolution", "_convolution",
    "conv_transpose2d", "mkldnn_convolution",
))  # fmt: skip


def check(training: Training) -> Verdict:
    place = _place(training)
    if place is None:
        return Clear("every parameter that gets a gradient belongs to an optimizer")
    if unknown := why_not(training):
        return unknown
    details = json.loads(place["details"])
    unused = [str(name) for name in details["modules"]]
    named = f"{count(details['tensors'])} parameter tensors of {_listed(unused)}"
    counted = _counted(training, unused, [str(name) for name in details["trained"]])
    if counted is None:
        return CannotTell(
            f"no optimizer updates {named}, but their operators were not recorded",
            "record without --light: strobe run train.py",
        )
    step_ns = undisturbed_ns(training, operator_costs(training))
    share = min(0.95, sum(ns for ns, _ in counted) / step_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"the gradients of {named} are not used, {percent(share)} of step time")
    line = Lines(place["file"], place["line"])
    rows = tuple(cost.row() for ns, cost in sorted(counted, key=lambda one: -one[0])[:5])
    return Finding(
        title=f"no optimizer updates {named}: computing their gradients takes about "
        f"{percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            f"freeze them before training: model.{unused[0]}.requires_grad_(False)",
            "or give them to the optimizer, if they are meant to learn",
        ),
        evidence=(Evidence("operators", rows),),
        where=str(line),
        is_certain=False,
    )


def _place(training: Training) -> dict[str, Any] | None:
    """What was last noted: the more updates there were, the more is known."""
    rows = training.rows(
        "SELECT file, line, details FROM places WHERE what = $what ORDER BY rank, number DESC",
        {"what": UNTRAINED_PARAMETERS},
    )
    found = rows[0] if rows else None
    return found if found and json.loads(found["details"] or "{}").get("tensors") else None


def _listed(modules: list[str]) -> str:
    shown = ", ".join(modules[:2])
    return f"{shown} and others" if len(modules) > 2 else shown


def _counted(
    training: Training, unused: list[str], trained: list[str]
) -> list[tuple[float, OperatorCost]] | None:
    """What could be saved of each backward operator; None if no operator tells its module."""
    costs = [cost for cost in operator_costs(training) if cost.direction == "backward"]
    if not any(cost.scope for cost in costs):
        return None
    begins = _begins(training)
    first = min((at for scope, at in begins.items() if _is_below(scope, trained)), default=None)
    found = []
    for cost in costs:
        if cost.scope is None or not _is_below(cost.scope, unused):
            continue
        if first is not None and begins.get(cost.scope, 0) < first:
            found.append((cost.cost_ns, cost))
        elif bare(cost.cause) in _PRODUCTS or bare(cost.root) in _PRODUCTS:
            found.append((WEIGHTS_RATIO * cost.cost_ns, cost))
    return found


def _begins(training: Training) -> dict[str, int]:
    """When each module first runs in a step, counted from the first operator of the step."""
    rows = training.run.sql("""
        WITH ops AS (
            SELECT *, min(ts_ns) OVER (PARTITION BY rank, step) AS first_ns FROM sampled_ops
        )
        SELECT scope, min(ts_ns - first_ns) FROM ops
        WHERE NOT is_backward AND scope IS NOT NULL GROUP BY scope
    """)
    return dict(rows.fetchall())


def _is_below(scope: str, modules: list[str]) -> bool:
    """The first part of a scope is the class of the model."""
    path = scope.partition(".")[2]
    return any(path == module or path.startswith(f"{module}.") for module in modules)
