"""Smoothed curves: weighted means of each value and all before it, with weights that fade.

With a weight w, a value n points back counts w**n: TensorBoard's debiased moving average. With a
half-life, a value that was logged one half-life earlier counts half, however many values lie in
between. Only finite values take part; at other values the smoothed curve has no value.
"""

from typing import NamedTuple

import numpy as np

from strobe.errors import UsageError
from strobe.store.array_file import Array

# Values that one row of the vectorised recursion covers.
_ROW = 256


class Smoothing(NamedTuple):
    """By a weight from 0 to below 1, or by a half-life; 0 of both does not smooth."""

    weight: float = 0.0
    half_life_ns: float = 0.0

    def checked(self) -> "Smoothing":
        is_weight = 0 <= self.weight < 1
        is_half_life = 0 <= self.half_life_ns < float("inf")
        if not is_weight or not is_half_life or (self.weight and self.half_life_ns):
            raise UsageError(
                "smoothing needs a weight or a half-life",
                hint="a weight is at least 0 and below 1; a half-life is a length of time",
            )
        return self

    def __bool__(self) -> bool:
        return bool(self.weight or self.half_life_ns)


def smoothed(values: Array, ts_ns: Array, smoothing: Smoothing) -> Array:
    """Of finite values in order; times are only read for a half-life, and never go back in it."""
    if not len(values):
        return values.astype(np.float64)
    if smoothing.half_life_ns:
        span_ns = np.maximum(np.diff(ts_ns, prepend=ts_ns[:1]), 0)
        decay = np.exp2(span_ns / -smoothing.half_life_ns)
        mean: Array = _recursion(values, decay) / _recursion(np.ones(len(values)), decay)
        return mean
    weight = smoothing.weight
    if not weight:
        return values.astype(np.float64)
    total: Array = -np.expm1(np.arange(1, len(values) + 1) * np.log(weight)) / (1 - weight)
    return _recursion(values, weight) / total


def _recursion(values: Array, decay: Array | float) -> Array:
    """y[n] = decay[n] * y[n - 1] + values[n], from y[-1] = 0."""
    if len(values) <= _ROW:
        return _short_recursion(values, decay)
    rows = -(-len(values) // _ROW)
    # Position in the row first, so that each step of the loop works on all rows at once.
    result = _columns(values, rows, 0.0)
    if isinstance(decay, float):
        carried = np.cumprod(np.full(_ROW, decay))[:, np.newaxis]
        for at in range(1, _ROW):
            result[at] += decay * result[at - 1]
        ends = _recursion(result[-1], float(carried[-1, 0]))
        result[:, 1:] += carried * ends[:-1]
    else:
        carried = _columns(decay, rows, 1.0)
        for at in range(1, _ROW):
            result[at] += carried[at] * result[at - 1]
            carried[at] *= carried[at - 1]
        ends = _recursion(result[-1], carried[-1])
        result[:, 1:] += carried[:, 1:] * ends[:-1]
    return result.T.reshape(-1)[: len(values)]


def _columns(values: Array, rows: int, filler: float) -> Array:
    filled = np.full(rows * _ROW, filler)
    filled[: len(values)] = values
    return np.ascontiguousarray(filled.reshape(rows, _ROW).T)


def _short_recursion(values: Array, decay: Array | float) -> Array:
    factors = [decay] * len(values) if isinstance(decay, float) else decay.tolist()
    result, last = [], 0.0
    for value, factor in zip(values.tolist(), factors, strict=True):
        last = factor * last + value
        result.append(last)
    return np.array(result)
