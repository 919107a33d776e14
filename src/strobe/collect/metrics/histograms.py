"""Distributions: counted where the values are, so that only the counts travel."""

import json
import math
import sys
from time import monotonic_ns
from typing import Any

from strobe.collect.metrics.arrays import as_array
from strobe.collect.metrics.log import Job
from strobe.collect.metrics.records import whole_number
from strobe.model.metric_journal import HISTOGRAM
from strobe.model.metric_tables import LOGGED

# Bins by the number of finite values, as MindSpore chooses them.
_MOST_BINS = 90
# torch counts in the type of the values: beyond this, a float32 no longer counts by one.
_EXACT_IN_FLOAT32 = 1 << 24
# The squares of more values are added without an array of them, which rounds in the last place.
_FEW = 1 << 16


def histogram_job(
    tag: str, values: Any, step: Any, bins: int | None = None, source: str = LOGGED
) -> tuple[Job, int]:
    """Of a copy of the values: the script may change its own meanwhile."""
    record = {
        "type": HISTOGRAM, "monotonic_ns": monotonic_ns(), "tag": str(tag),
        "step": whole_number(step), "source": source,
    }  # fmt: skip
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        copy = values.detach().clone()
        size = copy.numel() * copy.element_size()
        return lambda: ({**record, **torch_histogram(copy, bins)}, None), size
    array = as_array(values, is_copied=True)
    return lambda: ({**record, **array_histogram(array, bins)}, None), array.nbytes


def bin_count(finite: int) -> int:
    if finite == 0:
        return 1
    if finite <= 5:
        return 2
    if finite <= 10:
        return 3
    return finite // 10 + 1 if finite <= 880 else _MOST_BINS


def edges(low: float, high: float, bins: int) -> list[float]:
    """Of bins of equal width. Where every value is the same, they reach half a unit around it."""
    if low == high:
        low, high = low - 0.5, high + 0.5
        if low == high:  # 0.5 is nothing beside this number
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    half, width = low / 2, (high / 2 - low / 2) / bins  # halves: the whole range may overflow
    inner = [2 * (half + width * number) for number in range(1, bins)]
    return [low, *inner, high]


def torch_histogram(values: Any, bins: int | None = None) -> dict[str, Any]:
    """The columns of a row of `histograms`, computed on the tensor's own device."""
    torch = sys.modules["torch"]
    flat = values.reshape(-1)
    if flat.is_complex():
        raise ValueError("a histogram of complex numbers has no order")
    if not flat.is_floating_point():
        flat = flat.to(torch.float64)
    elif flat.dtype not in (torch.float32, torch.float64):
        flat = flat.to(torch.float32)
    count = flat.numel()
    finite = flat
    low, high = torch.aminmax(flat) if count else (flat.new_zeros(()), flat.new_zeros(()))
    low, high = low.item(), high.item()
    if not math.isfinite(low) or not math.isfinite(high):
        finite = flat[torch.isfinite(flat)]
        low, high = (one.item() for one in torch.aminmax(finite)) if len(finite) else (0.0, 0.0)
    bounds = edges(low, high, bins or bin_count(len(finite)))
    counts = _torch_counts(finite, bounds)
    infinite = count - len(finite)
    return {
        **_moments(finite.sum(dtype=torch.float64).item(), _squares(finite)),
        "count": count,
        "nan_count": int(torch.isnan(flat).sum()) if infinite else 0,
        "positive_infinity_count": int((flat == math.inf).sum()) if infinite else 0,
        "negative_infinity_count": int((flat == -math.inf).sum()) if infinite else 0,
        "min": low if len(finite) else None, "max": high if len(finite) else None,
        "edges": json.dumps(bounds), "counts": json.dumps(counts),
    }  # fmt: skip


def _squares(finite: Any) -> float:
    torch = sys.modules["torch"]
    if len(finite) <= _FEW:
        return float(finite.double().square().sum())
    norm = float(torch.linalg.vector_norm(finite, dtype=torch.float64))
    return norm * norm


def _torch_counts(finite: Any, bounds: list[float]) -> list[int]:
    torch = sys.modules["torch"]
    if not len(finite):
        return [0] * (len(bounds) - 1)
    counted = torch.histc(finite, len(bounds) - 1, bounds[0], bounds[-1])
    if finite.dtype is not torch.float64 and counted.max() >= _EXACT_IN_FLOAT32:
        pieces = finite.split(_EXACT_IN_FLOAT32 - 1)
        counted = sum(
            torch.histc(piece, len(bounds) - 1, bounds[0], bounds[-1]).double() for piece in pieces
        )
    return [int(one) for one in counted.tolist()]


def array_histogram(values: Any, bins: int | None = None) -> dict[str, Any]:
    """The columns of a row of `histograms`, of a numpy array."""
    numpy = sys.modules["numpy"]
    flat = numpy.asarray(values).reshape(-1)
    if flat.dtype.kind not in "fiub":
        raise ValueError(f"a histogram is of numbers, not of {flat.dtype}")
    flat = flat.astype(numpy.float64)
    finite = flat[numpy.isfinite(flat)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    bounds = edges(low, high, bins or bin_count(len(finite)))
    counts, _ = numpy.histogram(finite, numpy.array(bounds))
    with numpy.errstate(over="ignore"):
        moments = _moments(float(finite.sum()), float(numpy.square(finite).sum()))
    return {
        **moments, "count": len(flat), "nan_count": int(numpy.isnan(flat).sum()),
        "positive_infinity_count": int((flat == math.inf).sum()),
        "negative_infinity_count": int((flat == -math.inf).sum()),
        "min": low if len(finite) else None, "max": high if len(finite) else None,
        "edges": json.dumps(bounds), "counts": json.dumps(counts.tolist()),
    }  # fmt: skip


def _moments(total: float, squares: float) -> dict[str, float | None]:
    """A sum that overflows is unknown."""
    return {
        "sum": total if math.isfinite(total) else None,
        "sum_squares": squares if math.isfinite(squares) else None,
    }
