"""Floating-point operations of MindSpore's operators, from the shapes of their inputs.

What is recorded has no attributes: whether a matrix is transposed shows in the dimension that two
matrices have in common. What needs a stride, as a convolution does, is not counted.
"""

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from strobe.ingest.shapes import Shape, parsed_shapes


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
    batch = prod(max(x, y) for x, y in zip(a[:-2], b[:-2], strict=False)) if a[:-2] else 1
    return 2 * batch * _product(a[-2:], b[-2:])


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
    "Conv2DBackpropInput": _convolution_of_gradient,
}
