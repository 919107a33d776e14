"""Arrays and files of a training as rows of the tables that name them."""

import io
import json
from typing import Any

import numpy as np

from strobe.ingest.formats.event_files.pictures import picture
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import Metrics
from strobe.store.blobs import store_blob


def add_tensor(
    metrics: Metrics, array: Array, dtype: str = "", plugin: str | None = None, **row: Any
) -> None:
    """A row of `tensors`, and the file that it names."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    data = file.getvalue()
    metrics["tensors"].add_row(
        dtype=dtype or array.dtype.name, shape=json.dumps(list(array.shape)),
        plugin=plugin, file=store_blob(data, "npy"), bytes=len(data), **_summary(array, plugin),
        **row,
    )  # fmt: skip


def add_bytes(metrics: Metrics, data: bytes, plugin: str, **row: Any) -> None:
    """Bytes that only their plugin understands, as a tensor of them."""
    add_tensor(metrics, np.frombuffer(data, dtype=np.uint8), plugin=plugin, **row)


def add_image(metrics: Metrics, data: bytes, size: tuple[Any, Any, Any], **row: Any) -> None:
    """A row of `images`, and its file; of an unknown size, what the file says."""
    found = picture(data)
    width, height, channels = (
        given or own for given, own in zip(size, found[1:], strict=True)
    )  # fmt: skip
    metrics["images"].add_row(
        width=width, height=height, channels=channels, format=found.format,
        file=store_blob(data, found.format), bytes=len(data), **row,
    )  # fmt: skip


def _summary(array: Array, plugin: str | None) -> dict[str, Any]:
    if array.dtype.kind not in "fiub" or (plugin and array.dtype == np.uint8):
        return {}
    numbers = array.astype(np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    nan_count = int(np.isnan(numbers).sum())
    if not len(finite):
        return {"nan_count": nan_count}
    with np.errstate(over="ignore"):
        mean = float(finite.mean())
    return {
        "min": float(finite.min()), "max": float(finite.max()), "nan_count": nan_count,
        "mean": mean if np.isfinite(mean) else None,
    }  # fmt: skip
