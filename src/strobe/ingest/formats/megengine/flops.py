"""Floating-point operations of a MegEngine operator, from its shapes and parameters.

By the rules of MegEngine's own footprint (a multiply and an add are two), which the static profile
writes and the timeline does not: so both say the same of the same operator. What has no rule there
(batch normalisation, softmax, reshape) has none here.
"""

import json
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from strobe.ingest.building.shapes import parsed_shapes
from strobe.ingest.trace.codes import Array, distinct
from strobe.ingest.trace.spans import Vocabulary

Shapes = list[list[int]]
Formula = Callable[[Shapes, Shapes, dict[str, Any]], int]


def of_spans(
    names: list[str], name: Array, dims: Array, outputs: Array, concrete: Array, is_op: Array,
    words: Vocabulary,
) -> Array:  # fmt: skip
    """The work of each span; -1 where unknown. Each distinct operator is judged once."""
    result = np.full(len(name), -1, dtype=np.int64)
    rows = np.flatnonzero(is_op)
    kinds, back = distinct([column[rows] for column in (name, dims, outputs, concrete)])
    texts = list(words.texts)
    work = []
    for code, *told in kinds:
        given, made, parameters = (texts[number] if number >= 0 else "" for number in told)
        count = flops(names[code], parsed_shapes(given), parsed_shapes(made), _object(parameters))
        work.append(-1 if count is None else count)
    if work:
        result[rows] = np.array(work, dtype=np.int64)[back]
    return result


def flops(name: str, given: Shapes, made: Shapes, parameters: dict[str, Any]) -> int | None:
    formula = _FORMULAS.get(name)
    if formula is None and parameters.get("mode") == name:  # element-wise ones are named so
        formula = _elementwise
    if formula is None or not made:
        return None
    try:
        count = formula(given, made, parameters)
    except (IndexError, ValueError, TypeError, ZeroDivisionError):
        return None
    return count if 0 <= count < 2**63 else None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _elementwise(given: Shapes, made: Shapes, _: dict[str, Any]) -> int:
    return prod(made[0]) * (max(len(given), 2) - 1)


def _convolution(result: list[int], kernel: list[int]) -> int:
    """Kernels are (out, in, h, w), or (groups, out, in, h, w): `in` is that of one group."""
    *_, channels, height, width = kernel
    return prod(result) * height * width * channels * 2


def _forward(given: Shapes, made: Shapes, _: dict[str, Any]) -> int:
    return _convolution(made[0], given[1])


def _backward_data(given: Shapes, made: Shapes, _: dict[str, Any]) -> int:
    """Given the kernel and the gradient of the result."""
    return _convolution(given[1], given[0])


def _backward_filter(given: Shapes, made: Shapes, _: dict[str, Any]) -> int:
    """Given what the convolution was given, and the gradient of its result."""
    return _convolution(given[1], made[0])


def _matrix(given: Shapes, made: Shapes, parameters: dict[str, Any]) -> int:
    (rows, columns), first = made[0], given[0]
    depth = first[0] if str(parameters.get("transposeA")) in ("1", "True") else first[1]
    return rows * columns * depth * 2


def _of_input(given: Shapes, made: Shapes, _: dict[str, Any]) -> int:
    return prod(given[0])


def _of_output(given: Shapes, made: Shapes, _: dict[str, Any]) -> int:
    return prod(made[0])


def _pooling(given: Shapes, made: Shapes, parameters: dict[str, Any]) -> int:
    return prod(made[0]) * int(parameters["window_h"]) * int(parameters["window_w"])


_FORMULAS: dict[str, Formula] = {
    "Convolution": _forward,
    "ConvolutionBackwardData": _backward_data,
    "ConvolutionBackwardFilterV2": _backward_filter,
    "ConvolutionBackwardFilter": _backward_filter,
    "MatrixMul": _matrix,
    "Reduce": _of_input,
    "Concat": _of_output,
    "Dimshuffle": _of_output,
    "Pooling": _pooling,
}
