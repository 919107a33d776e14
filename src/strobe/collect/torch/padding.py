"""How much of a model's input is padding that every sample of the batch has.

Only inputs in host memory are examined: reading one on a device would block the host.
"""

from collections.abc import Iterable, Iterator
from typing import Any

# Shorter sequences are not worth changing; a dimension this short is rarely a sequence.
_SHORTEST = 16
# Above this size the examination would take more than a millisecond.
_MOST_ELEMENTS = 1 << 20
_MOST_DEPTH = 3


def padded_inputs(args: Iterable[Any], kwargs: dict[str, Any]) -> list[dict[str, Any]]:
    """For each sequence among the arguments of a model: the shape, and the length that the longest
    sample of the batch uses.

    A sequence is integers of (batch, length), or real numbers of (batch, length, features).
    """
    found = []
    for tensor in _tensors((*args, *kwargs.values()), _MOST_DEPTH):
        used = _used(tensor)
        if used is not None:
            found.append({"shape": list(tensor.shape), "used": used})
    return found


def _tensors(values: Iterable[Any], depth: int) -> Iterator[Any]:
    for value in values:
        if hasattr(value, "is_floating_point"):
            yield value
        elif depth and isinstance(value, dict):
            yield from _tensors(value.values(), depth - 1)
        elif depth and isinstance(value, list | tuple):
            yield from _tensors(value, depth - 1)


def _used(tensor: Any) -> int | None:
    """None if it is not a sequence, or cannot be examined."""
    is_sequence = tensor.ndim == (3 if tensor.is_floating_point() else 2)
    if not is_sequence or tensor.requires_grad or tensor.device.type != "cpu":
        return None
    count, length = tensor.shape[:2]
    if count < 2 or length < _SHORTEST or tensor.numel() > _MOST_ELEMENTS:
        return None
    try:
        array = tensor.numpy()
    except (RuntimeError, TypeError):  # sparse, fake, or of a type that numpy does not have
        return None
    if array.dtype.kind not in "iuf":
        return None
    # Real numbers are padded with zeros, integers with any one number.
    padding = 0 if tensor.is_floating_point() else array[0, -1]
    is_used = (array != padding).any(axis=(0, 2) if array.ndim == 3 else 0)
    places = is_used.nonzero()[0]
    return int(places[-1]) + 1 if len(places) else None
