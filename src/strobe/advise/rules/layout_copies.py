"""Tensors are copied only to lie otherwise in memory, or to have another type.

## What it is
`permute`, `transpose` and `expand` are free; the `.contiguous()`, `.reshape()` or `.clone()` that
follows is not: it moves every byte. The same goes for `.to(dtype)`, `.float()` and `.half()` of the
same tensor at every step, and for convolutions that get one image channels-first and the next
channels-last.

## How it is judged
The time of copies (`copy_`, inside `clone`, `contiguous`, `to`, `reshape`) in the forward and
backward passes of an ordinary step, and of those that a norm makes because its gradient lies
otherwise. A little copying is part of any attention, so a finding needs 6% of step time. What
convolutions and products copy inside, batches on their way in and the optimizer's own copies do not
count.

A program of JAX must not overwrite its arguments, unless they were given away to it. Where it
changes an array in place (`.at[...].set`, a loop that carries it), XLA first copies all of it, and
these copies count if they are of a megabyte or more.

## How to fix
Keep one layout through the model: choose the order of dimensions once, at the input; use layers
that take it (`batch_first=True`, `channels_last`); use `einsum`, `flatten` or `matmul` on the
permuted tensor instead of a copy of it. Convert weights, tables and masks once, before the loop,
and `register_buffer` the result. In JAX, `jax.jit(f, donate_argnums=0)` gives an array away: it
must not be used after the call, and is changed where it lies.
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
from strobe.advise.training import Training
from strobe.units import percent

NAME = "layout-copies"

# Attention written by hand copies a few percent of its time without fault.
WORTH_TELLING_RATIO = 0.06
# A part of the copies is needed in any layout.
AVOIDABLE_RATIO = 0.9

_COPIES = {"copy_", "_to_copy", "clone", "contiguous"}
# What a model calls that comes down to a copy, and layers that copy what lies otherwise. Copies
# inside others (a convolution's packing, the bias of a product, the state of an RNN) are theirs.
_CALLED = {
    "contiguous", "clone", "to", "_to_copy", "copy_", "reshape", "flatten", "type_as", "type",
    "repeat", "layer_norm", "group_norm",
}  # fmt: skip


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    if (found := argument_copies.check(training, costs)) is not None:
        return found
    copies = [cost for cost in costs if _is_copy(cost)]
    share = AVOIDABLE_RATIO * sum(cost.cost_ns for cost in copies) / max(1.0, training.typical_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"copies take {percent(share / AVOIDABLE_RATIO)} of step time")
    dearest = copies[0]
    count = sum(cost.calls for cost in copies)
    inside = f" of {dearest.scope}" if dearest.scope else ""
    return Finding(
        title=f"copying tensors takes {percent(share / AVOIDABLE_RATIO)} of step time "
        f"({count:,.0f} copies a step)",
        share=share,
        expected_speedup=1 / (1 - min(share, 0.95)),
        fixes=(
            fix("avoid-copies", training.framework, inside),
            "keep one order of dimensions through the model, so that permute needs no copy",
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in copies[:5])),),
        where=where_called(training, [dearest]),
        is_certain=False,
    )


def _is_copy(cost: OperatorCost) -> bool:
    is_of_model = cost.direction in ("forward", "backward", "rest")
    return cost.type in _COPIES and is_of_model and bare(cost.root) in _CALLED
