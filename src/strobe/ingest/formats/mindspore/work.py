"""Floating-point operations of MindSpore's operators, from the shapes of their inputs.

What is recorded has no attributes: whether a matrix is transposed shows in the dimension that two
matrices have in common. How large the output of a convolution is, which its stride and its padding
decide, shows in the gradient of that output, which goes into the gradient of the filters together
with the convolution's input.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import prod
from typing import Any

from strobe.ingest.building.shapes import Shape, broadcast, parsed_shapes
from strobe.ingest.formats.mindspore.names import Meaning

_CONVOLUTION, _OF_FILTERS, _OF_INPUT = "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"
CONVOLUTIONS = (_CONVOLUTION, _OF_FILTERS, _OF_INPUT)  # it and its gradients

_Sizes = tuple[int, ...]
# A convolution as far as its inputs tell: its module, its input, how many filters it has.
_Which = tuple[str, _Sizes, int]


def flops_of(operators: Iterable[tuple[Meaning, str]]) -> list[int]:
    """The work of one run of each, from the shapes of its inputs; -1 where it is not known."""
    found = list(operators)
    convolutions = _Convolutions(found)
    return [
        convolutions.flops(meaning, text)
        if meaning.type in (_CONVOLUTION, _OF_FILTERS)
        else flops(meaning.type, text)
        for meaning, text in found
    ]


class _Convolutions:
    """Of the same input and as many filters there may be two, of different strides or sizes of
    filters: what is not the same for both is not known."""

    def __init__(self, operators: list[tuple[Meaning, str]]) -> None:
        self._outputs: dict[_Which, set[_Sizes]] = defaultdict(set)
        self._filters: dict[_Which, set[_Sizes]] = defaultdict(set)
        for meaning, text in operators:
            which, own = _convolution(meaning, text)
            known = self._filters if meaning.type == _CONVOLUTION else self._outputs
            if own:
                known[which].add(own)
                known[_of_any_module(which)].add(own)

    def flops(self, meaning: Meaning, text: str) -> int:
        which, own = _convolution(meaning, text)
        other = self._outputs if meaning.type == _CONVOLUTION else self._filters
        # MindSpore gives the gradients of convolutions that are alike one module, that of the last.
        found = other.get(which) or other.get(_of_any_module(which)) or set()
        if not own or len(found) != 1:
            return -1
        output, filters = (*found, own) if meaning.type == _CONVOLUTION else (own, *found)
        return 2 * prod(output) * prod(filters[1:])


def _convolution(meaning: Meaning, text: str) -> tuple[_Which, _Sizes]:
    """Which one it is of, and its filters or the gradient of its output; empty if unknown."""
    shapes = [tuple(shape) for shape in parsed_shapes(text)[:2]]
    if meaning.type not in (_CONVOLUTION, _OF_FILTERS) or [len(s) for s in shapes] != [4, 4]:
        return ("", (), 0), ()
    if meaning.type == _CONVOLUTION:
        given, filters = shapes
        return (meaning.scope, given, filters[0]), filters
    gradient, given = shapes
    return (meaning.scope, given, gradient[1]), gradient


def _of_any_module(which: _Which) -> _Which:
    return ("", *which[1:])


@lru_cache(maxsize=1 << 12)
def flops(kind: str, shapes_text: str) -> int:
    """The work of one run; -1 where it is not known."""
    formula = _FORMULAS.get(kind)
    if formula is None:
        return -1
    try:
        return formula(parsed_shapes(shapes_text))
    except (ValueError, IndexError, TypeError):
        return -1


def _matmul(shapes: list[Any]) -> int:
    a, b = shapes[:2]
    return 2 * prod(broadcast([a[:-2], b[:-2]])) * _product(a[-2:], b[-2:])


def _product(a: Shape, b: Shape) -> int:
    """Of two matrices, either of which may be transposed: the common dimension counts once."""
    (a0, a1), (b0, b1) = a, b
    for rows, common, columns, other in (
        (a0, a1, b1, b0), (a0, a1, b0, b1), (a1, a0, b1, b0), (a1, a0, b0, b1),
    ):  # fmt: skip
        if common == other:
            return rows * common * columns
    raise ValueError("no dimension in common")


def _dense(shapes: list[Any]) -> int:
    """Of rows with a matrix of weights, which has a row for every output."""
    x, weight = shapes[:2]
    if x[-1] != weight[-1]:
        raise ValueError("no dimension in common")
    return int(2 * prod(x) * weight[0])


def _convolution_of_gradient(shapes: list[Any]) -> int:
    """Of a convolution's input: every value of the output's gradient meets a filter."""
    gradient, filters = shapes[:2]
    return int(2 * prod(gradient) * prod(filters[1:]))


_FORMULAS: dict[str, Callable[[list[Any]], int]] = {
    "MatMul": _matmul,
    "MatMulExt": _matmul,
    "Mm": _matmul,
    "BatchMatMul": _matmul,
    "BatchMatMulExt": _matmul,
    "Dense": _dense,
    _OF_INPUT: _convolution_of_gradient,
    "Conv2DTranspose": _convolution_of_gradient,
}
