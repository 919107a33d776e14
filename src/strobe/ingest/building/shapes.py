"""The arguments of an operator, parsed from recorded text: shapes, values, element sizes.

And what follows: the shapes of its outputs if the operator is known, and the bytes it touched.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import msgspec

Shape = list[int]

_BYTES_OF_DTYPE = {
    "double": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2,
    "c10::Float8_e5m2": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2fnuz": 1,
    "c10::Float8_e4m3fnuz": 1, "long int": 8, "long": 8, "int": 4, "short": 2, "short int": 2,
    "signed char": 1, "unsigned char": 1, "char": 1, "bool": 1, "c10::complex<float>": 8,
    "c10::complex<double>": 16, "c10::complex<c10::Half>": 4,
}  # fmt: skip

# One output, as large as the inputs broadcast together.
_ELEMENTWISE = frozenset(
    "aten::" + name
    for name in (
        "add", "sub", "rsub", "mul", "div", "pow", "maximum", "minimum", "where", "eq", "ne", "lt",
        "le", "gt", "ge", "relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt",
        "neg", "abs", "clamp", "clamp_min", "clamp_max", "reciprocal", "sin", "cos", "lerp",
        "addcmul", "addcdiv", "threshold_backward", "gelu_backward", "silu_backward",
        "sigmoid_backward", "tanh_backward", "leaky_relu", "elu", "softplus", "hardtanh",
        "_softmax", "softmax", "_log_softmax", "log_softmax", "_softmax_backward_data",
        "_log_softmax_backward_data", "masked_fill", "dropout", "bitwise_and", "logical_not",
        "logical_and", "clone", "contiguous", "zeros_like", "ones_like", "empty_like",
        "rand_like", "randn_like",
    )
)  # fmt: skip


def parsed(text: str | None) -> list[Any]:
    """A recorded list, or an empty one if the text is missing or broken."""
    if not text:
        return []
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        return []
    return found if isinstance(found, list) else []


def parsed_shapes(text: str | None) -> list[Any]:
    """A recorded list of shapes; a list of tensors is a list of shapes inside it."""
    found = parsed(text)
    return found if all(_is_shape(shape) or _are_shapes(shape) for shape in found) else []


def _is_shape(found: Any) -> bool:
    return isinstance(found, list) and all(type(size) is int and size >= 0 for size in found)


def _are_shapes(found: Any) -> bool:
    return isinstance(found, list) and all(_is_shape(shape) for shape in found)


def values(concrete: list[Any], place: int) -> list[int]:
    """The integers (or booleans) of a recorded argument such as "[2, 2]", "2" or "False"."""
    text = concrete[place] if place < len(concrete) else ""
    words = str(text).strip("[]").replace(",", " ").split()
    return [int(w) if w not in ("True", "False") else int(w == "True") for w in words]


def outputs(name: str, dims: list[Any], concrete: list[Any]) -> list[Shape] | None:
    """The shapes of an operator's outputs; None if they do not follow from its inputs."""
    try:
        if name in _ELEMENTWISE or name.removesuffix("_") in _ELEMENTWISE:
            tensors = [shape for shape in dims if shape]
            return [dims[0] if name.endswith("_") else broadcast(tensors)] if tensors else None
        rule = _OUTPUT_RULES.get(name)
        return rule(dims, concrete) if rule else None
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        return None


def bytes_touched(dims: list[Any], dtypes: list[Any], made: list[Shape] | None) -> int | None:
    """Bytes of the inputs and of the known outputs; None if an element's size is unknown.

    That is so for lists of tensors: torch records their shapes, but "TensorList" for their types.
    """
    total, size = 0, 0
    for shape, dtype in _flattened(dims, dtypes):
        known = _BYTES_OF_DTYPE.get(str(dtype), 0)
        if shape and (not known or isinstance(shape[0], list)):
            return None
        # A tensor without dimensions is recorded like a missing one, but has a type.
        total += known * prod(shape)
        size = size or known
    if not size:
        return None
    return total + size * sum(prod(shape) for shape in made or [])


def _flattened(dims: list[Any], dtypes: list[Any]) -> list[tuple[Any, Any]]:
    """Shape and type of each input; of each tensor of a list whose types were recorded."""
    found: list[tuple[Any, Any]] = []
    for shape, dtype in zip(dims, dtypes, strict=False):
        is_list = isinstance(dtype, list) and len(dtype) == len(shape)
        found += zip(shape, dtype, strict=True) if is_list else [(shape, dtype)]
    return found


def convolution_output(
    x: Shape, w: Shape, stride: Shape, padding: Shape, dilation: Shape, *,
    transposed: bool, output_padding: Shape, groups: int,
) -> Shape:  # fmt: skip
    axes = range(len(x) - 2)
    span = [_at(dilation, i, 1) * (w[2 + i] - 1) for i in axes]
    pad = [2 * _at(padding, i, 0) for i in axes]
    step = [_at(stride, i, 1) for i in axes]
    if transposed:
        extra = [_at(output_padding, i, 0) + 1 for i in axes]
        size = [(x[2 + i] - 1) * step[i] - pad[i] + span[i] + extra[i] for i in axes]
        return [x[0], w[1] * groups, *size]
    return [x[0], w[0], *((x[2 + i] + pad[i] - span[i] - 1) // step[i] + 1 for i in axes)]


def _at(sizes: Shape, axis: int, otherwise: int) -> int:
    return sizes[axis if len(sizes) > 1 else 0] if sizes else otherwise


def broadcast(shapes: list[Shape]) -> Shape:
    width = max(len(shape) for shape in shapes)
    columns = zip(*([1] * (width - len(shape)) + shape for shape in shapes), strict=True)
    return [next((size for size in column if size != 1), 1) for column in columns]


def _matrix(dims: list[Any], _: list[Any]) -> list[Shape]:
    return [[dims[0][0], dims[1][1]]]


def _bias_matrix(dims: list[Any], _: list[Any]) -> list[Shape]:
    return [[dims[1][0], dims[2][1]]]


def _batch(dims: list[Any], _: list[Any]) -> list[Shape]:
    return [[*dims[0][:2], dims[1][2]]]


def _bias_batch(dims: list[Any], _: list[Any]) -> list[Shape]:
    return [[*dims[1][:2], dims[2][2]]]


def _linear(dims: list[Any], _: list[Any]) -> list[Shape]:
    return [[*dims[0][:-1], dims[1][0]]]


def _matmul(dims: list[Any], _: list[Any]) -> list[Shape]:
    a, b = dims[0], dims[1]
    batch = broadcast([a[:-2], b[:-2]])
    return [batch + ([a[-2]] if len(a) > 1 else []) + ([b[-1]] if len(b) > 1 else [])]


def _convolution(dims: list[Any], concrete: list[Any]) -> list[Shape]:
    stride, padding, dilation = (values(concrete, place) for place in (3, 4, 5))
    out = convolution_output(
        dims[0], dims[1], stride, padding, dilation, transposed=bool(values(concrete, 6)[0]),
        output_padding=values(concrete, 7), groups=values(concrete, 8)[0],
    )  # fmt: skip
    return [out]


def _plain_convolution(
    dims: list[Any], concrete: list[Any], *, stride: int, padding: int
) -> list[Shape]:
    """For an operator that cannot be transposed, with its dilation and groups last."""
    last = max(stride, padding)
    out = convolution_output(
        dims[0], dims[1], values(concrete, stride), values(concrete, padding),
        values(concrete, last + 1), transposed=False, output_padding=[],
        groups=values(concrete, last + 2)[0],
    )  # fmt: skip
    return [out]


def _convolution_backward(dims: list[Any], concrete: list[Any]) -> list[Shape]:
    bias = [dims[0][1]]
    wanted = values(concrete, 10)
    made = zip(wanted, (dims[1], dims[2], bias), strict=True)
    return [shape for want, shape in made if want]


def _attention(dims: list[Any], _: list[Any]) -> list[Shape]:
    return [[*dims[0][:-1], dims[2][-1]]]


def _attention_backward(dims: list[Any], _: list[Any]) -> list[Shape]:
    return dims[1:4]


def _cat(dims: list[Any], concrete: list[Any]) -> list[Shape]:
    """Concatenated along one axis; tensors without elements are left out."""
    parts = [shape for shape in dims[0] if shape != [0]]
    (axis,) = values(concrete, 1)
    if any(len(part) != len(parts[0]) for part in parts):
        raise ValueError("the parts have different numbers of axes")
    made = list(parts[0])
    made[axis] = sum(part[axis] for part in parts)
    return [made]


def _stack(dims: list[Any], concrete: list[Any]) -> list[Shape]:
    first = dims[0][0]
    (axis,) = values(concrete, 1)
    place = axis if axis >= 0 else len(first) + 1 + axis
    return [[*first[:place], len(dims[0]), *first[place:]]]


def _like_first(dims: list[Any], _: list[Any]) -> list[Shape]:
    return [dims[0]]


_OUTPUT_RULES: dict[str, Callable[[list[Any], list[Any]], list[Shape]]] = {
    "aten::mm": _matrix,
    "aten::addmm": _bias_matrix,
    "aten::bmm": _batch,
    "aten::baddbmm": _bias_batch,
    "aten::linear": _linear,
    "aten::matmul": _matmul,
    "aten::convolution": _convolution,
    "aten::_convolution": _convolution,
    "aten::mkldnn_convolution": partial(_plain_convolution, padding=3, stride=4),
    "aten::miopen_convolution": partial(_plain_convolution, padding=3, stride=4),
    "aten::cudnn_convolution": partial(_plain_convolution, padding=2, stride=3),
    **dict.fromkeys(
        ("aten::conv1d", "aten::conv2d", "aten::conv3d"),
        partial(_plain_convolution, stride=3, padding=4),
    ),
    "aten::convolution_backward": _convolution_backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "aten::scaled_dot_product_attention": _attention,
    "aten::cat": _cat,
    "aten::stack": _stack,
    "aten::copy_": _like_first,
    "aten::fill_": _like_first,
    "aten::zero_": _like_first,
    "aten::native_layer_norm": _like_first,
    "aten::native_batch_norm": _like_first,
}
