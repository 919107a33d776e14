"""How many samples a batch has: the first dimension of its first tensor or array."""

from collections.abc import Iterable, Mapping
from typing import Any

# Of a batch of texts, say, not every one is examined.
_DEEPEST, _WIDEST = 4, 8


def batch_size(batch: Any, depth: int = _DEEPEST) -> int:
    """0 if it is unknown."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        try:
            return int(shape[0])
        except (TypeError, ValueError, IndexError):  # a scalar, or a property of another kind
            return 0
    parts: Iterable[Any]
    if isinstance(batch, Mapping):
        parts = batch.values()
    elif isinstance(batch, (list, tuple)):
        parts = batch
    else:
        parts = getattr(batch, "__dict__", {}).values()
    if depth:
        for _, part in zip(range(_WIDEST), parts, strict=False):
            found = batch_size(part, depth - 1)
            if found:
                return found
    return 0
