"""The optimizer updates its parameters one by one.

## What it is
Without `foreach` or `fused`, an optimizer updates its parameters in a Python loop, with a dozen
small operators for each. In a model with many small tensors the calls cost far more than the
arithmetic. On a CPU, PyTorch uses this loop by default.

## How it is judged
Strobe takes the time of the update in a typical step if none of its operators works on a list of
tensors (`_foreach_...`) or does the whole update (`_fused_...`). It subtracts the time that a fused
update would need to read and write each parameter with its gradient and state. A finding needs 15%
of step time, and at least 20 tensors or a million parameters. With few large tensors the cost is
not the calls but memory traffic, because each operator reads and writes the tensors again.

## How to fix
`torch.optim.AdamW(parameters, lr=..., fused=True)` updates all parameters in one operator (Adam,
AdamW, SGD and Adagrad, on CPU and GPU). Other optimizers support `foreach=True`. A manually written
update can use `torch._foreach_add_(parameters, gradients, alpha=-lr)`.
"""

import json

import numpy as np

from strobe.advise.evidence.operator_times import OperatorCost, operator_costs, why_not
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.thresholds import speedup
from strobe.advise.training import Training
from strobe.frameworks import Framework
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "unfused-optimizer"

# A loop over fewer tensors is not a fault, because every small model has one...
FEWEST_TENSORS = 20
# ... unless they are so large that each operator reads and writes them in memory again.
MANY_PARAMETERS = 1_000_000
# The loop is PyTorch's default on a CPU; below this share it is not worth a change.
SMALLEST_SHARE = 0.15
# In measurements, fused AdamW reads and writes 43 bytes per ns on one core.
BYTES_PER_NS = 30
# Fused Adam reads the parameter, the gradient and two states, and writes three of them. Most other
# optimizers need fewer passes.
PASSES = 7
# The measured cost for each tensor of a fused update, including Python.
FUSED_TENSOR_NS = 5_000


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    if not training.framework.fused_optimizers:
        return CannotTell(
            message("unfused-optimizer.other-framework"),
            message("unfused-optimizer.show-update"),
        )
    update_ns = float(np.median(training.steps["update_ns"]))
    costs = [cost for cost in operator_costs(training) if cost.direction == "update"]
    if any(cost.type.startswith(training.framework.joint_updates) for cost in costs):
        return Clear(message("unfused-optimizer.together"))
    counts = _parameters(costs)
    step_ns = max(1.0, training.typical_ns)
    fused_ns = _fused_ns(counts)
    share = max(0.0, update_ns - fused_ns) / step_ns
    update_share = percent(update_ns / step_ns)
    tensors = round(sum(counts.values()))
    if share < SMALLEST_SHARE:
        return Clear(message("unfused-optimizer.small", share=update_share, saved=percent(share),
                             tensors=count(tensors)))  # fmt: skip
    if not _is_worth_fusing(counts):
        return Clear(message("unfused-optimizer.few-parameters", share=update_share,
                             tensors=count(tensors)))  # fmt: skip
    place = training.place("update")
    return Finding(
        title=message("unfused-optimizer.title", share=update_share),
        why=_why(costs, tensors, update_ns, fused_ns),
        share=share,
        expected_speedup=speedup(share),
        fixes=_fixes(training.framework, _optimizer(training), str(place) if place else None),
        evidence=(Evidence("operators", tuple(cost.row() for cost in costs[:5])),),
        where=str(place) if place else None,
    )


def _why(costs: list[OperatorCost], tensors: int, update_ns: float, fused_ns: float) -> Message:
    values = {"calls": count(round(sum(cost.calls for cost in costs))),
              "time": duration(update_ns), "fused": duration(fused_ns)}  # fmt: skip
    if tensors == 1:
        return message("unfused-optimizer.why-one-tensor", **values)
    return message("unfused-optimizer.why", tensors=count(tensors), **values)


def _parameters(costs: list[OperatorCost]) -> dict[int, float]:
    """The number of tensors that are updated, by size.

    One operator writes every parameter once; others are called as often for its state. So the
    tensors of a single in-place operator are counted.
    """
    by_type: dict[str, dict[int, float]] = {}
    for cost in costs:
        shape = _first_shape(cost)
        if cost.type.endswith("_") and shape is not None:
            sizes = by_type.setdefault(cost.type, {})
            size = int(np.prod(shape))
            sizes[size] = sizes.get(size, 0.0) + cost.calls
    # The last operator of an update is called once for each parameter: addcdiv_, add_.
    ending = ("addcdiv_", "add_", "sub_", "copy_")
    found = [by_type[name] for name in ending if name in by_type]
    return found[0] if found else max(by_type.values(), key=lambda s: sum(s.values()), default={})


def _is_worth_fusing(counts: dict[int, float]) -> bool:
    parameters = sum(size * tensors for size, tensors in counts.items())
    return sum(counts.values()) >= FEWEST_TENSORS or parameters >= MANY_PARAMETERS


def _first_shape(cost: OperatorCost) -> list[int] | None:
    """The shape of the first input. None for a single number, which is a counter of steps."""
    try:
        shapes = json.loads(cost.input_shapes or "[]")
    except ValueError:
        return None
    first = shapes[0] if shapes else None
    is_shape = isinstance(first, list) and first and all(isinstance(n, int) for n in first)
    return first if is_shape else None


def _fused_ns(counts: dict[int, float]) -> float:
    moved = sum(size * 4 * PASSES * tensors for size, tensors in counts.items())
    return moved / BYTES_PER_NS + FUSED_TENSOR_NS * sum(counts.values())


def _optimizer(training: Training) -> str | None:
    rows = training.rows("SELECT details FROM places WHERE what = 'update' ORDER BY number LIMIT 1")
    try:
        details = json.loads(rows[0]["details"] or "{}") if rows else {}
    except ValueError:
        return None
    name = details.get("optimizer") if isinstance(details, dict) else None
    return str(name) if name else None


def _fixes(framework: Framework, name: str | None, place: str | None) -> tuple[str, ...]:
    step = message("unfused-optimizer.step-at", line=place) if place else ""
    if name is None:
        return (message("unfused-optimizer.set-fused", step=step),
                message("unfused-optimizer.set-foreach"))  # fmt: skip
    if name in framework.fused_optimizers:
        return (message("unfused-optimizer.use-fused", name=name, step=step),
                message("unfused-optimizer.use-foreach", name=name))  # fmt: skip
    return (message("unfused-optimizer.use-foreach-first", name=name, step=step),
            message("unfused-optimizer.switch-optimizer"))  # fmt: skip
