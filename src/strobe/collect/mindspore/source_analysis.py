"""What does a compiled function do, judged by its source code?

It looks for an optimizer or a gradient that the code names, directly or in the functions that it
calls. This is used for functions that were compiled before recording began, and to distinguish
functions.
"""

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from strobe.model.journal import GRAPH_BACKWARD, GRAPH_UPDATE

# The function that MindSpore itself creates for one whose gradient is taken.
GRADIENT = "after_grad"

# What takes a gradient, by its name in MindSpore.
_GRADIENTS = {"grad", "value_and_grad", "GradOperation"}
# The depth to which functions that call one another are followed.
_DEEPEST = 4


def parts_of(function: Any, is_optimizer: Callable[[Any], bool]) -> int:
    """From what the function, or a bound method, names."""
    parts = 0
    for value in _values(function, is_optimizer):
        parts |= GRAPH_UPDATE if is_optimizer(value) else 0
        parts |= GRAPH_BACKWARD if _takes_gradient(value) else 0
    return parts


def optimizer_named(function: Any, is_optimizer: Callable[[Any], bool]) -> Any:
    """The optimizer that the function names, or None."""
    return next(filter(is_optimizer, _values(function, is_optimizer)), None)


def _values(function: Any, is_optimizer: Callable[[Any], bool]) -> Iterator[Any]:
    """The function, what its code names, and what the code of those names."""
    seen = set[int]()
    ahead = [(function, 0)]
    while ahead:
        value, depth = ahead.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if depth < _DEEPEST and not is_optimizer(value) and not _takes_gradient(value):
            ahead += [(named, depth + 1) for named in _named(value)]


def _takes_gradient(value: Any) -> bool:
    name = getattr(value, "__name__", type(value).__name__)
    is_theirs = str(getattr(value, "__module__", "")).partition(".")[0] == "mindspore"
    return name == GRADIENT or (is_theirs and name in _GRADIENTS)


def _named(value: Any) -> Iterator[Any]:
    for _, found in named_values(value):
        yield found


def named_values(value: Any) -> Iterator[tuple[str, Any]]:
    """What the code of a function names, as far as it exists without running it."""
    owner = getattr(value, "__self__", None)
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType):
        return
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    for name in _names(function.__code__):
        for found in (closed, function.__globals__, getattr(owner, "__dict__", {})):
            if name in found:
                yield name, found[name]


def _names(code: CodeType) -> Iterator[str]:
    """Including those of nested functions."""
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
