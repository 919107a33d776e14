"""The backward pass computes gradients that no optimizer uses.

## What it is
Only some parameters are trained, for example the head of a pretrained model, and only these are
given to the optimizer. The others still have `requires_grad=True`, so the backward pass computes
their gradients in every step, and nothing uses them.

## How it is judged
Strobe records which parameters of the model require gradients but belong to no optimizer that has
made an update. The cost is their part of the backward pass, from the recorded operators. For
modules that run before the first trained one, all of it counts. For later modules, half of each
product or convolution counts, because the gradient of their input is still needed. The forward pass
gets faster as well, which is not counted.

The same happens if a loss goes through a model that another optimizer trains, such as the loss of a
discriminator whose generated samples are not detached: `zero_grad` then clears gradients that were
never used. Strobe detects this when a gradient changes after an update and is cleared before the
next one. It counts that part of the model's backward pass if the pass ends in this model. A finding
needs 5% of step time.

## How to fix
Freeze what is not trained before the optimizer is created: `model.backbone.requires_grad_(False)`.
If a frozen part comes first, call it under `torch.no_grad()`, which saves memory too. If these
parameters are meant to learn, give them to the optimizer.
"""

import json
from typing import Any

from strobe.advise.evidence.operator_times import (
    OperatorCost,
    operator_costs,
    undisturbed_ns,
    why_not,
)
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE, speedup
from strobe.advise.training import Lines, Training
from strobe.analyse import recorded
from strobe.analyse.select import quoted
from strobe.messages import Message, message
from strobe.model.journal import DISCARDED_GRADIENTS, UNTRAINED_PARAMETERS
from strobe.units import count, percent

NAME = "unused-gradients"

# The part of the backward pass of a product that computes the gradient of its weights.
WEIGHTS_RATIO = 0.5
_PRODUCTS = ("matmul", "convolution")  # families


def check(training: Training) -> Verdict:
    place = _place(training)
    if place is None:
        return _discarded(training)
    if unknown := why_not(training):
        return unknown
    details = json.loads(place["details"])
    unused = [str(name) for name in details["modules"]]
    parameters = _parameters(int(details["tensors"]), unused)
    counted = _counted(training, unused, [str(name) for name in details["trained"]])
    if counted is None:
        return CannotTell(
            message("unused-gradients.no-operators", parameters=parameters),
            message("unused-gradients.record"),
        )
    step_ns = undisturbed_ns(training, operator_costs(training))
    share = min(MOST_ESTIMATED, sum(ns for ns, _ in counted) / step_ns)
    if share < SMALLEST_SHARE:
        return Clear(message("unused-gradients.small", parameters=parameters, share=percent(share)))
    line = Lines(place["file"], place["line"])
    rows = tuple(cost.row() for ns, cost in sorted(counted, key=lambda one: -one[0])[:5])
    return Finding(
        title=message("unused-gradients.title", share=percent(share)),
        why=message("unused-gradients.why", parameters=parameters),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("freeze-module", training.framework, module=unused[0]),
            message("unused-gradients.train"),
        ),
        evidence=(Evidence("operators", rows),),
        where=str(line),
        is_certain=False,
    )


def _discarded(training: Training) -> Verdict:
    """Gradients of a model that are cleared before its optimizer has used them."""
    rows = training.rows(
        "SELECT file, line, details FROM places WHERE what = $what ORDER BY rank, number DESC",
        {"what": DISCARDED_GRADIENTS},
    )
    if not rows:
        return Clear(message("unused-gradients.all-used"))
    if unknown := why_not(training):
        return unknown
    costs = [cost for cost in operator_costs(training) if cost.direction == "backward"]
    step_ns = undisturbed_ns(training, operator_costs(training))
    share = 0.0
    for row in rows:
        details = json.loads(row["details"])
        model = str(details["module"])
        below = [cost for cost in costs if (cost.scope or "").partition(".")[0] == model]
        ratio = details["discarded"] / (details["discarded"] + details["updates"])
        share = min(MOST_ESTIMATED, ratio * sum(cost.cost_ns for cost in below) / step_ns)
        if share >= SMALLEST_SHARE and _ends_passes(training, model):
            break
    else:
        if share < SMALLEST_SHARE:
            return Clear(message("unused-gradients.discarded-small", share=percent(share)))
        return Clear(message("unused-gradients.discarded-needed", share=percent(share)))
    worst = sorted(below, key=lambda cost: -cost.cost_ns)[:5]
    return Finding(
        title=message("unused-gradients.discarded-title", model=model, share=percent(share)),
        why=message("unused-gradients.discarded-why", model=model, ratio=percent(ratio)),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("detach-output", training.framework, model=model),
            fix("no-gradients-of-model", training.framework, model=model),
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in worst)),),
        where=str(Lines(row["file"], row["line"])),
        is_certain=False,
    )


def _ends_passes(training: Training, model: str) -> bool:
    """Whether every backward pass through this model ends in it, not in another model."""
    recorded.prepare_outline(training.run)
    ((last,),) = training.run.sql(f"""
        WITH passes AS (
            SELECT rank, ts_ns FROM outline WHERE kind = 'phase' AND name = 'backward'
        ),
        ops AS (
            SELECT o.rank, p.ts_ns AS pass_ns, o.ts_ns,
                   split_part(o.scope, '.', 1) = {quoted(model)} AS is_of_model
            FROM sampled_ops o ASOF JOIN passes p ON p.rank = o.rank AND p.ts_ns <= o.ts_ns
            WHERE o.is_backward AND o.scope IS NOT NULL
        )
        SELECT bool_and(is_last) FROM (
            SELECT max_by(is_of_model, ts_ns) AS is_last FROM ops
            GROUP BY rank, pass_ns HAVING bool_or(is_of_model)
        )
    """).fetchall()
    return bool(last)


def _place(training: Training) -> dict[str, Any] | None:
    """The last record, because more is known after more updates."""
    rows = training.rows(
        "SELECT file, line, details FROM places WHERE what = $what ORDER BY rank, number DESC",
        {"what": UNTRAINED_PARAMETERS},
    )
    found = rows[0] if rows else None
    return found if found and json.loads(found["details"] or "{}").get("tensors") else None


def _parameters(tensors: int, modules: list[str]) -> Message:
    """4 parameter tensors of backbone and neck."""
    if tensors == 1:
        return message("unused-gradients.one-parameter", modules=_modules(modules))
    return message("unused-gradients.parameters", count=count(tensors), modules=_modules(modules))


def _modules(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) == 2:
        return message("unused-gradients.two-modules", first=names[0], second=names[1])
    return message("unused-gradients.more-modules", first=names[0], second=names[1])


def _counted(
    training: Training, unused: list[str], trained: list[str]
) -> list[tuple[float, OperatorCost]] | None:
    """The time that could be saved in each backward operator; None if no operator has a module."""
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
        elif {cost.cause_family, cost.root_family} & {*_PRODUCTS}:
            found.append((WEIGHTS_RATIO * cost.cost_ns, cost))
    return found


def _begins(training: Training) -> dict[str, int]:
    """When each module first runs in a step, in ns after the first operator of the step."""
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
