"""MindSpore's SummaryRecord: `add_value`, and the data of summary operators, at each `record`.

Taken where they leave for the processes that write MindSpore's files.
"""

import sys
from typing import Any

from strobe.collect.loggers.calls import Values, wrap
from strobe.collect.metrics.arrays import image_job, tensor_job
from strobe.collect.metrics.histograms import histogram_job

_SOURCE = "mindspore"


def install(package: str) -> None:
    wrap(sys.modules[package].WriterPool, "write", _SOURCE, _write)


def _write(values: Values, pool: Any, data: dict[str, list[dict[str, Any]]]) -> None:
    numbers: dict[Any, dict[str, Any]] = {}
    for kind, parts in data.items():
        for part in parts:
            tag, value, step = part.get("tag"), part.get("value"), part.get("step")
            if kind == "scalar" and value is not None and value.size:
                numbers.setdefault(step, {})[str(tag)] = next(value.flat).item()
            elif kind in _JOBS and value is not None and value.size:
                values.submit(*_JOBS[kind](str(tag), value, step))
    for step, found in numbers.items():
        values.scalars(found, step)


_JOBS = {
    "histogram": lambda tag, value, step: histogram_job(tag, value, step, source=_SOURCE),
    "image": lambda tag, value, step: image_job(tag, _bytes(value), step, _SOURCE, "NCHW"),
    "tensor": lambda tag, value, step: tensor_job(tag, value, step, _SOURCE),
}


def _bytes(images: Any) -> Any:
    """Pixels from 0 to 255 as MindSpore scales them, whatever the range of the values."""
    if images.dtype == "uint8":
        return images
    least, most = images.min(), images.max()
    if least >= 0 and most <= 1:
        least, scale = 0, 255.0
    else:
        scale = 255 / (most - least + 1) if most != least else 1
    return ((images.astype("float32") - least) * scale).astype("uint8")
