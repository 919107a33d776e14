"""Edges and counts of a distribution as the JSON that its row has."""

import json

import msgspec
import numpy as np

from strobe.ingest.trace.codes import Array


def as_json(values: Array) -> str:
    """Whole numbers without a fraction."""
    if not len(values):
        return "[]"
    if not np.isfinite(values).all():
        return json.dumps([float(v) if np.isfinite(v) else None for v in values])
    is_whole = (values == np.rint(values)).all() and np.abs(values).max() < 2**53
    return msgspec.json.encode((values.astype(np.int64) if is_whole else values).tolist()).decode()
