"""The optimizer updates its parameters one by one.

## What it is
Without `foreach` or `fused` an optimizer goes through its parameters in a Python loop, with a dozen
small operators for each. For a model of many small tensors the calls cost far more than the
arithmetic. On a CPU this loop is what PyTorch does unless it is told otherwise.

## How it is judged
The length of the update in an ordinary step, where its operators are single ones: none of them
works on a list of tensors (`_foreach_...`) or does the whole update (`_fused_...`). From it is
taken what a fused update would need: reading and writing each parameter with its gradient and
state. A finding needs 15% of step time, and 20 tensors or a million parameters in fewer: there it
is not the calls that cost, but going through memory anew for each operator.

## How to fix
`torch.optim.AdamW(parameters, lr=..., fused=True)`: one operator for all parameters (Adam, AdamW,
SGD and Adagrad, on CPU and GPU). Others take `foreach=True`. An update written by hand can use
`torch._foreach_add_(parameters, gradients, alpha=-lr)`.
"""

import json

import numpy as np

from strobe.advise.evidence.operator_times import OperatorCost, operator_costs, why_not
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.framework import TORCH
from strobe.advise.training import Training
from strobe.units import percent

NAME = "unfused-optimizer"

# A loop over fewer tensors is no fault to tell of: any small model has one...
FEWEST_TENSORS = 20
# (the default of PyTorch on a CPU; below this it is a habit, not a fault)
WORTH_TELLING_RATIO = 0.15
# ... unless they are so large that each of its operators goes through memory anew.
MANY_PARAMETERS = 1_000_000
# What fused AdamW was measured to read and write, on one core, is 43.
BYTES_PER_NS = 30
# Fused Adam reads parameter, gradient and two states, and writes three of them; most read fewer.
PASSES = 7
# What it was measured to cost for each tensor, its part of Python included.
FUSED_TENSOR_NS = 5_000

_FUSABLE = ("Adam", "AdamW", "SGD", "Adagrad")


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    if training.framework != TORCH:
        return CannotTell(
            "this check knows the optimizers of PyTorch only",
            "see the time of the update with: strobe show RUN steps",
        )
    update_ns = float(np.median(training.steps["update_ns"]))
    costs = [cost for cost in operator_costs(training) if cost.direction == "update"]
    if any(cost.type.startswith(("_foreach_", "_fused_")) for cost in costs):
        return Clear("the optimizer updates its parameters together")
    counts = _parameters(costs)
    step_ns = max(1.0, training.typical_ns)
    lost_ns = max(0.0, update_ns - _fused_ns(counts))
    share = lost_ns / step_ns
    update_share = percent(update_ns / step_ns)
    tensors = round(sum(counts.values()))
    if share < WORTH_TELLING_RATIO or not _is_much(counts):
        return Clear(f"the update takes {update_share} of step time, for {tensors} tensors")
    place = training.place("update")
    name = _optimizer(training)
    calls = sum(cost.calls for cost in costs)
    return Finding(
        title=f"the update takes {update_share} of step time: {calls:,.0f} operators for "
        f"{tensors} tensors one by one",
        share=share,
        expected_speedup=1 / (1 - min(share, 0.95)),
        fixes=_fixes(name, str(place) if place else None),
        evidence=(Evidence("operators", tuple(cost.row() for cost in costs[:5])),),
        where=str(place) if place else None,
    )


def _parameters(costs: list[OperatorCost]) -> dict[int, float]:
    """How many tensors of each size are updated: by the in-place operator that sees most of them.

    Every parameter is written once by some operator; others work on its state as often.
    """
    by_type: dict[str, dict[int, float]] = {}
    for cost in costs:
        shape = _first_shape(cost)
        if cost.type.endswith("_") and shape is not None:
            sizes = by_type.setdefault(cost.type, {})
            size = int(np.prod(shape))
            sizes[size] = sizes.get(size, 0.0) + cost.calls
    # The operator that ends an update is called once for each parameter: addcdiv_, add_.
    ending = ("addcdiv_", "add_", "sub_", "copy_")
    found = [by_type[name] for name in ending if name in by_type]
    return found[0] if found else max(by_type.values(), key=lambda s: sum(s.values()), default={})


def _is_much(counts: dict[int, float]) -> bool:
    parameters = sum(size * count for size, count in counts.items())
    return sum(counts.values()) >= FEWEST_TENSORS or parameters >= MANY_PARAMETERS


def _first_shape(cost: OperatorCost) -> list[int] | None:
    """Of a tensor of some size: single numbers are counters of steps."""
    try:
        shapes = json.loads(cost.input_shapes or "[]")
    except ValueError:
        return None
    first = shapes[0] if shapes else None
    is_shape = isinstance(first, list) and first and all(isinstance(n, int) for n in first)
    return first if is_shape else None


def _fused_ns(counts: dict[int, float]) -> float:
    moved = sum(size * 4 * PASSES * count for size, count in counts.items())
    return moved / BYTES_PER_NS + FUSED_TENSOR_NS * sum(counts.values())


def _optimizer(training: Training) -> str | None:
    rows = training.rows("SELECT details FROM places WHERE what = 'update' ORDER BY number LIMIT 1")
    try:
        details = json.loads(rows[0]["details"] or "{}") if rows else {}
    except ValueError:
        return None
    name = details.get("optimizer") if isinstance(details, dict) else None
    return str(name) if name else None


def _fixes(name: str | None, place: str | None) -> tuple[str, ...]:
    at = f" (its step is at {place})" if place else ""
    if name is None:
        fused = f"give the optimizer fused=True{at}"
        return (fused, "or foreach=True, where it has no fused form")
    if name in _FUSABLE:
        return (f"torch.optim.{name}(..., fused=True){at}", f"or {name}(..., foreach=True)")
    return (f"{name}(..., foreach=True){at}", "or an optimizer that has fused=True, like AdamW")
