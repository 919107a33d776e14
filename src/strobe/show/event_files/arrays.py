"""Values as arrays: scalars, the tensors of `tensors` rows, the bins of `histograms` rows."""

import io
from typing import Any, NamedTuple

import msgspec
import numpy as np

from strobe.show.event_files.omissions import Omissions
from strobe.show.event_files.run_metrics import RankMetrics, Row

Array = np.ndarray[Any, np.dtype[Any]]

_DAMAGE = (OSError, ValueError, EOFError, TypeError, SyntaxError, OverflowError)
_NUMBERS, _WIDEST = "biufc", 16  # kinds of types; bytes of an element
BYTES = np.dtype(np.uint8)


def array_of(metrics: RankMetrics, row: Row) -> Array | None:
    """None, and counted, if its file is missing or damaged."""
    data = metrics.file(row)
    if data is None:
        return None
    try:
        array: Array = np.load(io.BytesIO(data), allow_pickle=False)
    except _DAMAGE:
        array = np.zeros(0, dtype=object)
    if array.dtype.kind not in _NUMBERS or array.dtype.itemsize > _WIDEST:
        metrics.omissions.add("damaged")
        return None
    return array


def is_bytes(array: Array, row: Row) -> bool:
    """Whether it is not numbers, but data that only its plugin understands."""
    return row["plugin"] is not None and array.dtype == BYTES and array.ndim == 1


def count_rounded(values: Array, omissions: Omissions) -> None:
    """Scalars that a float32 does not hold: rounded, or beyond its range."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32).astype(np.float64)
    is_changed = (narrow != values) & ~np.isnan(values)
    beyond = int(np.count_nonzero(is_changed & np.isinf(narrow)))
    omissions.add("infinite-scalars", beyond)
    omissions.add("rounded-scalars", int(np.count_nonzero(is_changed)) - beyond)


class Bins(NamedTuple):
    edges: Array
    counts: Array


def bins_of(row: Row) -> Bins:
    """An edge that is not finite is null in the row: the first is -Inf, the last is +Inf."""
    edges = msgspec.json.decode(row["edges"])
    counts = np.array(msgspec.json.decode(row["counts"]), dtype=np.float64)
    if edges and edges[0] is None:
        edges[0] = -np.inf
    known = [np.inf if edge is None else edge for edge in edges]
    return Bins(np.array(known, dtype=np.float64), counts)
