"""Distributions in TensorBoard's two forms: bins by their right edges, and a table of bins."""

from collections.abc import Callable
from typing import Any

import numpy as np

from strobe.ingest.formats.event_files.histogram_rows import as_json
from strobe.ingest.formats.xplane.wire import fields
from strobe.ingest.trace.codes import Array

_MIN, _MAX, _COUNT, _SUM, _SUM_SQUARES, _LIMITS, _COUNTS = 1, 2, 3, 4, 5, 6, 7
_MOST = 2**62  # values in a histogram
_NOT_AN_EDGE = 1e308  # the outermost limits stand for infinity


def from_proto(data: bytes, broken: Callable[[], None]) -> dict[str, Any] | None:
    """A row of `histograms` from a HistogramProto; None if it makes no sense."""
    single = dict.fromkeys((_MIN, _MAX, _COUNT, _SUM, _SUM_SQUARES), 0.0)
    many: dict[int, list[Array]] = {_LIMITS: [], _COUNTS: []}
    for number, value in fields(data, broken):
        if not isinstance(value, bytes) or len(value) % 8 or not value:
            continue
        if number in single:
            single[number] = float(np.frombuffer(value[:8], "<f8")[0])
        elif number in many:
            many[number].append(np.frombuffer(value, "<f8"))
    limits, counts = (np.concatenate([np.zeros(0), *parts]) for parts in many.values())
    if len(limits) != len(counts) or not 0 <= single[_COUNT] < _MOST:
        return None
    edges, counts = _bins(limits, counts, single[_MIN], single[_MAX])
    is_empty = not single[_COUNT]
    return {
        "count": int(single[_COUNT]), "min": None if is_empty else single[_MIN],
        "max": None if is_empty else single[_MAX], "sum": single[_SUM],
        "sum_squares": single[_SUM_SQUARES], **_counted(edges, counts),
    }  # fmt: skip


def from_table(table: Array) -> dict[str, Any] | None:
    """A row of `histograms` from a tensor of rows left, right, count; None if it is none."""
    if table.ndim != 2 or (table.shape[1] != 3 and len(table)):
        return None
    if not len(table):
        return {"count": 0, **_counted(np.zeros(0), np.zeros(0))}
    left, right, counts = table.astype(np.float64).T
    if not (counts >= 0).all() or counts.sum() >= _MOST:
        return None
    return {
        "count": int(counts.sum()), "min": float(left[0]), "max": float(right[-1]),
        **_counted(np.append(left, right[-1]), counts),
    }  # fmt: skip


def _bins(limits: Array, counts: Array, least: float, most: float) -> tuple[Array, Array]:
    """Edges around the bins that contain something."""
    filled = np.flatnonzero(counts > 0)
    if not len(filled):
        return np.zeros(0), np.zeros(0)
    first, last = int(filled[0]), int(filled[-1])
    left = limits[first - 1] if first else -np.inf
    edges = np.append(left, limits[first : last + 1])
    edges[0] = edges[0] if edges[0] > -_NOT_AN_EDGE else min(least, edges[1])
    edges[-1] = edges[-1] if edges[-1] < _NOT_AN_EDGE else max(most, edges[-2])
    return edges, counts[first : last + 1]


def _counted(edges: Array, counts: Array) -> dict[str, Any]:
    return {
        "nan_count": 0, "positive_infinity_count": 0, "negative_infinity_count": 0,
        "edges": as_json(edges), "counts": as_json(counts),
    }  # fmt: skip
