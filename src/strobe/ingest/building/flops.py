"""Floating-point operations of an operator, from the shapes of its inputs.

Counts what torch.utils.flop_counter counts, by the same formulas (a multiply-add counts as two;
causal attention counts in full; the weight gradient of a grouped convolution is not divided by its
groups), so that sums agree with it; and attention on the CPU, which it omits.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from strobe.ingest.building.nesting import nearest
from strobe.ingest.building.shapes import Shape, outputs, values
from strobe.ingest.trace.codes import Array

Formula = Callable[[list[Any], list[Any]], int]


def flops(name: str, dims: list[Any], concrete: list[Any]) -> int | None:
    """The work of one call; None for operators that are not counted or were not fully recorded."""
    formula = _FORMULAS.get(name)
    if formula is None:
        return None
    try:
        return formula(dims, concrete)
    except (ValueError, IndexError, TypeError):
        return None


def counted_once(work: Array, parent: Array) -> Array:
    """Work per event with -1 for none, only on the outermost operator that has it.

    aten::convolution contains aten::_convolution, which may contain aten::mm: the work is the same.
    """
    has_work = work >= 0
    around = np.where(parent >= 0, nearest(has_work, parent)[parent], -1)
    return np.where(around >= 0, -1, work)


def is_counted(name: str) -> bool:
    return name in _FORMULAS


def _mm(a: Shape, b: Shape) -> int:
    (m, k), (_, n) = a, b
    return 2 * m * k * n


def _bmm(a: Shape, b: Shape) -> int:
    (batch, m, k), (_, _, n) = a, b
    return 2 * batch * m * k * n


def _convolution_work(x: Shape, w: Shape, out: Shape, *, transposed: bool) -> int:
    return 2 * x[0] * prod(w) * prod((x if transposed else out)[2:])


def _convolution(dims: list[Any], concrete: list[Any], name: str = "aten::convolution") -> int:
    made = outputs(name, dims, concrete)
    if made is None:
        raise ValueError("the output of this convolution is not known")
    transposed = bool(values(concrete, 6)[0])
    return _convolution_work(dims[0], dims[1], made[0], transposed=transposed)


def _convolution_backward(dims: list[Any], concrete: list[Any]) -> int:
    grad, x, w = dims[:3]
    transposed = bool(values(concrete, 7)[0])
    wants_input, wants_weight, *_ = values(concrete, 10)
    work = 0
    if wants_input:
        work += _convolution_work(grad, w, x, transposed=not transposed)
    if wants_weight:
        source, filters = (grad, x) if transposed else (x, grad)
        work += 2 * source[1] * prod(w[2:]) * prod(filters)
    return work


def _attention(dims: list[Any], _: list[Any]) -> int:
    scores, width, width_out = _scores(*dims[:3])
    return 2 * scores * (width + width_out)


def _attention_backward(dims: list[Any], _: list[Any]) -> int:
    """Scores again, then the gradients of scores, values, queries and keys."""
    scores, width, width_out = _scores(*dims[1:4])
    return 2 * scores * (3 * width + 2 * width_out)


def _scores(query: Shape, key: Shape, value: Shape) -> tuple[int, int, int]:
    """The number of products of a query with a key, and the widths of queries and values."""
    batch, heads, queries, width = query
    return batch * heads * queries * key[2], width, value[3]


_FORMULAS: dict[str, Formula] = {
    "aten::mm": lambda dims, _: _mm(dims[0], dims[1]),
    "aten::_scaled_mm": lambda dims, _: _mm(dims[0], dims[1]),
    "aten::addmm": lambda dims, _: _mm(dims[1], dims[2]),
    "aten::bmm": lambda dims, _: _bmm(dims[0], dims[1]),
    "aten::baddbmm": lambda dims, _: _bmm(dims[1], dims[2]),
    "aten::convolution": _convolution,
    "aten::_convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_scaled_dot_product_flash_attention": _attention,
    "aten::_scaled_dot_product_efficient_attention": _attention,
    "aten::_scaled_dot_product_cudnn_attention": _attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "aten::_scaled_dot_product_flash_attention_backward": _attention_backward,
    "aten::_scaled_dot_product_efficient_attention_backward": _attention_backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention_backward,
}
