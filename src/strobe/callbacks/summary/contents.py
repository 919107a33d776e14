"""What a step of a training gave, found in the objects of PyTorch, JAX and MindSpore."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from strobe.collect.metrics.arrays import as_array, image_job
from strobe.collect.metrics.log import Job
from strobe.collect.metrics.numbers import Later, NotANumber, number

_CHANNELS = (1, 3)


def first_of(values: Any) -> Any:
    """The first output of a network, or the first column of a batch."""
    if isinstance(values, Mapping) or hasattr(values, "to_tuple"):  # transformers' ModelOutput
        if "loss" in values:
            return values["loss"]
        return next(iter(values.values()), None)
    if isinstance(values, (list, tuple)):
        return values[0] if values else None
    return values


def mean_of(loss: Any) -> Any:
    """One number of a loss that is given for each sample."""
    if loss is None or isinstance(loss, (int, float)):
        return loss
    loss = loss.detach() if hasattr(loss, "detach") else loss
    count = loss.numel() if hasattr(loss, "numel") else getattr(loss, "size", 1)
    if not isinstance(count, int) or count == 1:
        return loss
    if hasattr(loss, "is_floating_point") and not loss.is_floating_point():
        loss = loss.float()
    return loss.asnumpy().mean() if hasattr(loss, "asnumpy") else loss.mean()


def named_parameters(model: Any) -> Iterator[tuple[str, Any]]:
    """Of a torch module, or of nested dicts and lists of arrays."""
    if hasattr(model, "named_parameters"):
        for name, values in model.named_parameters():
            if values.requires_grad:
                yield name, values
        return
    jax = sys.modules.get("jax")
    if jax is not None:
        for path, values in jax.tree_util.tree_flatten_with_path(model)[0]:
            if hasattr(values, "dtype"):
                yield "/".join(map(_part, path)), values
    elif isinstance(model, Mapping):
        yield from model.items()


def _part(key: Any) -> str:
    for name in ("key", "name", "idx"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def is_torch(values: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def image_order(batch: Any) -> str:
    """The dimensions of a batch of images; empty if it is none."""
    shape = tuple(getattr(batch, "shape", ()))
    if len(shape) != 4 or not all(shape):
        return ""
    if shape[1] in _CHANNELS:
        return "NCHW"
    return "NHWC" if shape[3] in _CHANNELS else ""


def batch_image(tag: str, batch: Any, step: int, source: str) -> tuple[Job, int]:
    """A grid of the images; numbers beyond 0 to 1 are scaled to it, as MindSpore does."""
    order = image_order(batch)
    array = as_array(batch, is_copied=True)
    return lambda: image_job(tag, _scaled(array), step, source, order)[0](), array.nbytes


def _scaled(array: Any) -> Any:
    numpy = sys.modules["numpy"]
    if array.dtype == numpy.uint8 or array.dtype.kind == "b":
        return array
    numbers = array.astype(numpy.float64)
    finite = numbers[numpy.isfinite(numbers)]
    if not len(finite) or (finite.min() >= 0 and finite.max() <= 1):
        return numbers
    low, high = finite.min(), finite.max()
    return (numbers - low) / (high - low) if high > low else numpy.zeros_like(numbers)


def read(value: Any) -> Any:
    """A number that a device may still be computing; training has ended, so that may wait."""
    try:
        found = number(value)
    except NotANumber:
        return value
    return found.read() if isinstance(found, Later) else found


def batch_size(batch: Any) -> int | None:
    shape = tuple(getattr(first_of(batch), "shape", ()))
    return int(shape[0]) if shape else None


def learning_rate(optimizer: Any) -> Any:
    groups = getattr(optimizer, "param_groups", None)
    return groups[0].get("lr") if groups else None
