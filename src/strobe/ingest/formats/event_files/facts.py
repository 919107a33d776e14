"""Values of hyperparameters and lineage as the text and the number that the tables have."""

import json
import math
import struct
from typing import Any

import numpy as np


def fact(value: Any) -> dict[str, Any]:
    """The columns `value` and `number`."""
    if isinstance(value, str):
        return {"value": value, "number": None}
    if isinstance(value, bool) or value is None or isinstance(value, (list, dict)):
        return {"value": json.dumps(value, ensure_ascii=False), "number": None}
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return {"value": str(int(value)), "number": value}
    return {"value": str(value), "number": _number(value)}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def as_written(data: bytes) -> float:
    """A float32 as the shortest decimal number that stands for it: 0.05, not 0.0500000007."""
    return float(str(np.float32(struct.unpack("<f", data)[0])))
