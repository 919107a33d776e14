"""Operators compute in float64 where float32 would do.

## What it is
A tensor of type float64 ("double") makes every operator that uses it compute in float64 too. That
moves twice the bytes and halves the arithmetic throughput, and some operators have no fast
implementation for float64 (convolutions on a CPU). It usually happens by accident: NumPy arrays are
float64 by default, and so are the tensors that `torch.from_numpy` and `torch.tensor` make from
them.

## How it is judged
Strobe adds up the time of operators with a float64 tensor among their inputs in a typical step,
without the fixed cost of each call. About half of it counts as lost, and three quarters for
convolutions and LSTMs of PyTorch on a CPU, which have no fast implementation for float64. These are
typical figures, so the gain is a range. Single numbers do not count. A finding needs 5% of step
time.

## How to fix
Convert data to float32 where it enters the program: `torch.from_numpy(array).float()`, or
`array.astype(numpy.float32)` in the dataset, once rather than in every step. Remove `.double()`,
`dtype=torch.float64` and `torch.set_default_dtype(torch.float64)`. Code that really needs float64
(a long sum, a loss near zero) can use it in one place.
"""

import json

from strobe.advise.evidence.operator_times import OperatorCost, operator_costs, why_not
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.frameworks import of_all
from strobe.messages import message
from strobe.units import percent

NAME = "double-precision"

# The cost of an operator call in any dtype.
CALL_NS = 2_000

_DOUBLE = of_all(lambda framework: framework.float64)


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    doubles = [cost for cost in costs if cost.direction != "gap" and takes_double(cost)]
    if not doubles:
        return Clear(message("double-precision.none"))
    step_ns = max(1.0, training.typical_ns)
    time_share = percent(sum(cost.cost_ns for cost in doubles) / step_ns)
    least, share, most = (sum(losses) / step_ns for losses in _losses(training, doubles))
    if share < SMALLEST_SHARE:
        return Clear(message("double-precision.small", share=time_share, saved=percent(share)))
    most_expensive = max(doubles, key=lambda cost: cost.cost_ns)
    scope = most_expensive.scope
    place = training.place("model call")
    return Finding(
        title=message("double-precision.title", share=time_share),
        why=message(
            "double-precision.why",
            name=most_expensive.name,
            inside=message("place.inside", scope=scope) if scope else "",
            saved=percent(share),
        ),
        share=share,
        expected_speedup=speedup(share),
        speedup_range=(speedup(least), speedup(most)),
        fixes=(
            fix("use-float32", training.framework, str(place) if place else None),
            fix("drop-float64", training.framework),
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in doubles[:5])),),
        where=str(place) if place else scope,
        is_certain=False,
    )


def takes_double(cost: OperatorCost) -> bool:
    """Whether one of its inputs is a float64 tensor with more than one number."""
    if not cost.input_dtypes or not any(name in cost.input_dtypes for name in _DOUBLE):
        return False
    try:
        dtypes, shapes = json.loads(cost.input_dtypes), json.loads(cost.input_shapes or "[]")
    except ValueError:
        return False
    pairs = zip(dtypes, shapes, strict=False)
    return any(dtype in _DOUBLE and _count(shape) > 1 for dtype, shape in pairs)


def _count(shape: object) -> int:
    if not isinstance(shape, list) or not shape or not all(isinstance(n, int) for n in shape):
        return 1
    count = 1
    for size in shape:
        count *= size
    return count


def _losses(training: Training, doubles: list[OperatorCost]) -> list[list[float]]:
    """The time that each operator loses: the least, the typical, and the most."""
    double = training.framework.double
    losses: list[list[float]] = [[], [], []]
    for cost in doubles:
        loss = double.slow if cost.family in double.slow_families else double.usual
        least, most = loss.bounds
        computing_ns = max(0.0, cost.cost_ns - CALL_NS * cost.calls)
        for column, part in zip(losses, (least, loss.ratio, most), strict=True):
            column.append(part * computing_ns)
    return losses
