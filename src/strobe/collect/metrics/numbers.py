"""Numbers as frameworks hold them, read without making training wait."""

import sys
from collections.abc import Callable
from typing import Any

# Types that a row of scalars takes as they are.
PLAIN = frozenset((float, int, bool))


class NotANumber(ValueError):
    """What was given as a scalar is not one."""


class Later:
    """A number that a device is still computing; `read` waits for it, on the writing thread."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self.read = read


def number(value: Any) -> float | Later:
    """The scalar as a double, or how to get it. Raises NotANumber."""
    if isinstance(value, (bool, int, float)) and value.__class__ in PLAIN:
        return float(value)
    if isinstance(value, Later):
        return value
    library = type(value).__module__.partition(".")[0]
    found = _READERS.get(library, _plain)(value)
    if found is None:
        raise NotANumber(_description(value))
    return found


def _torch(value: Any) -> float | Later | None:
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return _plain(value)
    if value.numel() != 1 or value.is_complex():
        return None
    if value.device.type == "cpu":
        return float(value.item())
    # The script may change the tensor in place before it has been read.
    copy = value.detach().clone()
    return Later(lambda: float(copy.item()))


def _jax(value: Any) -> float | Later | None:
    if getattr(value, "size", None) != 1 or not hasattr(value, "is_ready"):
        return None  # a tracer, which has no value
    return _plain(value) if value.is_ready() else Later(lambda: float(value.reshape(())))


def _array(value: Any) -> float | None:
    """Of numpy, MindSpore and others whose arrays have a size."""
    if getattr(value, "size", 1) != 1:
        return None
    try:
        return float(value.item())
    except (AttributeError, TypeError, ValueError):
        return _plain(value)


def _plain(value: Any) -> float | None:
    if isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


_READERS: "dict[str, Callable[[Any], float | Later | None]]" = {
    "torch": _torch, "jaxlib": _jax, "jax": _jax, "numpy": _array, "mindspore": _array,
}  # fmt: skip


def _description(value: Any) -> str:
    shape = getattr(value, "shape", None)
    name = f"{type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    return f"{name} of shape {tuple(shape)}" if shape else name
