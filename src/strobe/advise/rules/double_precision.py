"""Operators compute in float64 where float32 would do.

## What it is
A tensor of type float64 ("double") makes every operator that it meets compute in float64 too.
That moves twice the bytes and does half the work a second, and some operators have no quick form
for it (convolutions on a CPU). It mostly comes in by accident: numpy's arrays are float64,
and so is what `torch.from_numpy` and `torch.tensor` make of them.

## How it is judged
The time of operators with a float64 tensor among their inputs, in an ordinary step, without what
a call costs anyway. Half of it is counted as lost, three quarters for convolutions and LSTMs of
PyTorch on a CPU, which have no fast form for float64. These are typical figures, so the gain is a
range. Single numbers do not count.

## How to fix
Turn data into float32 where it comes in: `torch.from_numpy(array).float()`, or
`array.astype(numpy.float32)` in the dataset, once and not at every step. Take away `.double()`,
`dtype=torch.float64` and `torch.set_default_dtype(torch.float64)`. What really needs float64 (a
long sum, a loss near zero) can do so in one place.
"""

import json
import re

from strobe.advise.evidence.operator_times import OperatorCost, operator_costs, why_not
from strobe.advise.finding import Clear, Evidence, Finding, Verdict, speedup
from strobe.advise.fixes import fix
from strobe.advise.training import Training
from strobe.units import percent

NAME = "double-precision"

# Twice the bytes and half the arithmetic of float32. Measured on a CPU with XLA: 0.2 of a
# normalization, 0.4 of a small product, 0.5 of a large one or a convolution, 0.65 of Adam.
LOST_RATIO, LOST_RANGE = 0.5, (0.35, 0.6)
# The same with PyTorch, which has no fast convolution and no fast LSTM for float64: 0.5 to 0.6 of
# products and elementwise operators; 0.55 to 0.92 of convolutions, 0.76 of an LSTM.
TORCH_RATIO, TORCH_RANGE = 0.55, (0.45, 0.65)
SLOW_RATIO, SLOW_RANGE = 0.75, (0.6, 0.88)
_SLOW_IN_TORCH = re.compile(r"aten::.*(conv|lstm|gru)|(?:Conv|Lstm|Gru)\w*Backward", re.IGNORECASE)
# What the call of an operator costs whatever it computes with.
CALL_NS = 2_000
# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05

# As torch, XLA and Ascend's tools call it.
_DOUBLE = ("double", "float64", "c10::complex<double>", "f64", "c128", "DOUBLE")


def check(training: Training) -> Verdict:
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    doubles = [cost for cost in costs if cost.direction != "gap" and takes_double(cost)]
    step_ns = max(1.0, training.typical_ns)
    time_share = sum(cost.cost_ns for cost in doubles) / step_ns
    least, share, most = (sum(losses) / step_ns for losses in _losses(training, doubles))
    if share < WORTH_TELLING_RATIO:
        return Clear(f"operators with float64 inputs take {percent(time_share)} of step time")
    dearest = max(doubles, key=lambda cost: cost.cost_ns)
    place = training.place("model call")
    return Finding(
        title=f"operators compute in float64 for {percent(time_share)} of step time, most of it in "
        f"{_named(dearest)}",
        share=share,
        expected_speedup=speedup(share),
        speedup_range=(speedup(least), speedup(most)),
        fixes=_fixes(training, place),
        evidence=(Evidence("operators", tuple(cost.row() for cost in doubles[:5])),),
        where=str(place) if place else dearest.scope,
        is_certain=False,
    )  # fmt: skip


def takes_double(cost: OperatorCost) -> bool:
    """Whether a tensor of it is of float64, and is more than a single number."""
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
    """What each operator loses: at least, typically, at most."""
    is_torch = training.framework == "torch" and not training.has_devices
    losses: list[list[float]] = [[], [], []]
    for cost in doubles:
        ratio, (least, most) = LOST_RATIO, LOST_RANGE
        if is_torch:
            ratio, (least, most) = TORCH_RATIO, TORCH_RANGE
        if is_torch and _SLOW_IN_TORCH.match(cost.name):
            ratio, (least, most) = SLOW_RATIO, SLOW_RANGE
        computing_ns = max(0.0, cost.cost_ns - CALL_NS * cost.calls)
        for column, part in zip(losses, (least, ratio, most), strict=True):
            column.append(part * computing_ns)
    return losses


def _named(cost: OperatorCost) -> str:
    return f"{cost.name} ({cost.scope})" if cost.scope else cost.name


def _fixes(training: Training, place: object) -> tuple[str, ...]:
    at = f" before the model is called at {place}" if place else " before the model is called"
    return (
        fix("use-float32", training.framework, at),
        fix("drop-float64", training.framework),
    )
