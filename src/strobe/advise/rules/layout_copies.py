"""Tensors are copied only to change their memory layout or dtype.

## What it is
`permute`, `transpose` and `expand` are free, but the `.contiguous()`, `.reshape()` or `.clone()`
that follows them moves every byte. So do `.to(dtype)`, `.float()` and `.half()` of the same tensor
in every step, and convolutions that receive one image channels-first and the next channels-last.

## How it is judged
Strobe adds up the time of copies (`copy_`, inside `clone`, `contiguous`, `to`, `reshape`) in the
forward and backward passes of a typical step, including those that a norm makes because its
gradient has another layout. Some copying is part of any attention, so a finding needs 6% of step
time. Copies inside convolutions and matrix products, copies of incoming batches and the optimizer's
own copies do not count.

A compiled JAX function must not overwrite its arguments unless they are donated. If it changes an
array in place (`.at[...].set`, a loop that carries it), XLA first copies the whole array. These
copies count if they are of a megabyte or more.

## How to fix
Keep one layout throughout the model: choose the order of dimensions once, at the input, and use
layers that accept it (`batch_first=True`, `channels_last`). Use `einsum`, `flatten` or `matmul` on
the permuted tensor instead of copying it. Convert weights, tables and masks once, before the loop,
and `register_buffer` the result. In JAX, `jax.jit(f, donate_argnums=0)` donates an array: XLA
updates it in place, and it must not be used after the call.
"""

from strobe.advise.evidence import argument_copies
from strobe.advise.evidence.operator_times import (
    OperatorCost,
    bare,
    operator_costs,
    where_called,
    why_not,
)
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import speedup
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import count, percent

NAME = "layout-copies"

# Manually written attention spends a few percent of its time on copies that it needs.
SMALLEST_SHARE = 0.06
# Some of the copies are needed in any layout.
AVOIDABLE_RATIO = 0.9

_COPIES = {"copy_", "_to_copy", "clone", "contiguous"}
# Calls of a model that are copies, and layers that copy inputs of another layout. Copies inside
# other operators (packing of a convolution, bias of a product, state of an RNN) belong to them.
_COPYING_CALLS = {
    "contiguous", "clone", "to", "_to_copy", "copy_", "reshape", "flatten", "type_as", "type",
    "repeat", "layer_norm", "group_norm",
}  # fmt: skip


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    if (found := argument_copies.check(training, costs, SMALLEST_SHARE)) is not None:
        return found
    copies = [cost for cost in costs if _is_copy(cost)]
    share = AVOIDABLE_RATIO * sum(cost.cost_ns for cost in copies) / max(1.0, training.typical_ns)
    time_share = percent(share / AVOIDABLE_RATIO)
    if share < SMALLEST_SHARE:
        return Clear(message("layout-copies.small", share=time_share))
    scope = copies[0].scope
    where = where_called(training, copies[:1])
    return Finding(
        title=message("layout-copies.title", share=time_share),
        why=_why(sum(cost.calls for cost in copies), scope),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("avoid-copies", training.framework, where if where != scope else None),
            message("layout-copies.one-order"),
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in copies[:5])),),
        where=where,
        is_certain=False,
    )


def _why(calls: float, scope: str | None) -> Message:
    """The number of copies, and the module that makes the most expensive ones."""
    copies = round(calls)
    if copies <= 1:
        inside = message("place.inside", scope=scope) if scope else ""
        return message("layout-copies.why-one-copy", inside=inside)
    if scope is None:
        return message("layout-copies.why", count=count(copies))
    return message("layout-copies.why-in-module", count=count(copies), scope=scope)


def _is_copy(cost: OperatorCost) -> bool:
    is_of_model = cost.direction in ("forward", "backward", "rest")
    return cost.type in _COPIES and is_of_model and bare(cost.root) in _COPYING_CALLS
