"""Values under the names of MindSpore's plugins: scalar, image, tensor, histogram."""

from typing import Any

from strobe.callbacks.summary.contents import batch_image, image_order
from strobe.callbacks.summary.destination import Destination
from strobe.callbacks.summary.errors import WrongType, WrongValue
from strobe.callbacks.summary.exports import exported
from strobe.collect.metrics.arrays import tensor_job
from strobe.collect.metrics.histograms import histogram_job
from strobe.messages import message

SCALAR, IMAGE, TENSOR, HISTOGRAM = ARRAYS = ("scalar", "image", "tensor", "histogram")


def check_value(plugin: str, name: Any, value: Any) -> None:
    """Raises what MindSpore's SummaryRecord raises."""
    if not name or not isinstance(name, str):
        raise WrongValue.of("errors/summary.empty-name", plugin=plugin, value=repr(name))
    shape = getattr(value, "shape", None)
    if shape is None or not hasattr(value, "dtype"):
        raise WrongType.of(
            "errors/summary.wrong-type", name=f"the value of {name}",
            accepted=message("errors/summary.a-tensor"), value=type(value).__name__,
        )  # fmt: skip
    is_well = {
        SCALAR: _size(shape) == 1, IMAGE: bool(image_order(value)),
        TENSOR: len(shape) > 0, HISTOGRAM: len(shape) > 0,
    }  # fmt: skip
    if not is_well[plugin]:
        raise WrongValue.of("errors/summary.wrong-shape", plugin=plugin, shape=tuple(shape))


def _size(shape: Any) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def log_value(
    to: Destination, plugin: str, tag: str, value: Any, step: int, export_folder: str = ""
) -> None:
    """Tensors are also written as .npy files below `export_folder`, if it is not empty."""
    if plugin == SCALAR:
        to.scalars({tag: value}, step)
    elif plugin == IMAGE:
        to.submit(batch_image(tag, value, step, to.source))
    elif plugin == HISTOGRAM:
        to.histogram(*histogram_job(tag, value, step, None, to.source))
    else:
        made = tensor_job(tag, value, step, to.source)
        to.submit(exported(made, to, export_folder) if export_folder else made)
