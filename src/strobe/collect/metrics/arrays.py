"""Images and tensors on their way into files. Nothing is imported: who has an array has numpy."""

import io
import json
import struct
import sys
import zlib
from collections.abc import Sequence
from time import monotonic_ns
from typing import Any

from strobe.collect.metrics.log import Job
from strobe.collect.metrics.records import whole_number
from strobe.model.metric_journal import IMAGE, TENSOR
from strobe.model.metric_tables import LOGGED

_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
# Colour types of PNG, by number of channels.
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
_MOST_CHANNELS = 4


def image_job(
    tag: str, image: Any, step: Any, source: str = LOGGED, order: str = "", index: int = 0
) -> tuple[Job, int]:
    """`order` names the dimensions, such as "HWC"; by default it follows from the shape."""
    record = {**_record(IMAGE, tag, step, source), "index": index}
    if isinstance(image, (bytes, bytearray)):
        data = bytes(image)
        return lambda: _encoded(record, data), len(data)
    if hasattr(image, "getbands") and hasattr(image, "save"):  # PIL
        copy = image.copy()
        return lambda: _from_pil(record, copy), copy.width * copy.height * _MOST_CHANNELS
    array = as_array(image, is_copied=True)
    return lambda: _from_array(record, array, order), array.nbytes


def tensor_job(
    tag: str, tensor: Any, step: Any, source: str = LOGGED, plugin: str | None = None
) -> tuple[Job, int]:
    """numpy has no bfloat16: such a tensor is stored as its bits, and its dtype says so."""
    dtype = str(getattr(tensor, "dtype", "")).rpartition(".")[2].lower()
    array = as_array(tensor, is_copied=True)
    record = {**_record(TENSOR, tag, step, source), "plugin": plugin}
    return lambda: _from_tensor(record, array, dtype), array.nbytes


def _record(kind: str, tag: str, step: Any, source: str) -> dict[str, Any]:
    return {
        "type": kind, "monotonic_ns": monotonic_ns(), "tag": str(tag), "step": whole_number(step),
        "source": source,
    }  # fmt: skip


def as_array(values: Any, is_copied: bool = False) -> Any:
    """A numpy array of an array, a tensor of a framework, or a list.

    A copy, if asked for: the script may change its own before it has been written.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.dtype is torch.bfloat16:
            values = values.contiguous().view(
                torch.uint16 if hasattr(torch, "uint16") else torch.int16
            )
        array = values.resolve_conj().resolve_neg().numpy()
        return array.copy() if is_copied else array
    if hasattr(values, "asnumpy"):  # MindSpore
        values = values.asnumpy()
    numpy = _numpy()
    array = numpy.asarray(values)
    if array.dtype.name == "bfloat16":  # of ml_dtypes
        array = array.view(numpy.uint16)
    return numpy.array(array, copy=True) if is_copied else array


def _numpy() -> Any:
    import importlib

    return sys.modules.get("numpy") or importlib.import_module("numpy")


def _encoded(record: dict[str, Any], data: bytes) -> Any:
    found = next((f for begin, f in _SIGNATURES.items() if data.startswith(begin)), None)
    if found is None:
        raise ValueError(f"the image {record['tag']} is neither a PNG, a JPEG nor a GIF file")
    return {**record, "format": found}, (data, found)


def _from_pil(record: dict[str, Any], image: Any) -> Any:
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    file = io.BytesIO()
    image.save(file, "PNG")
    size = {"width": image.width, "height": image.height, "channels": len(image.getbands())}
    return {**record, **size, "format": "png"}, (file.getvalue(), "png")


def _from_array(record: dict[str, Any], array: Any, order: str) -> Any:
    pixels = picture(array, order)
    height, width, channels = pixels.shape
    size = {"width": width, "height": height, "channels": channels}
    return {**record, **size, "format": "png"}, (png(pixels), "png")


def picture(array: Any, order: str = "") -> Any:
    """Bytes of shape (height, width, channels). Raises ValueError."""
    numpy = _numpy()
    order = (order or _order(array.shape)).upper()
    if len(order) != array.ndim:
        raise ValueError(f"an image of shape {array.shape} has not the dimensions {order}")
    for name in "NHWC":
        if name not in order:
            order, array = name + order, array[numpy.newaxis]
    array = array.transpose([order.index(name) for name in "NHWC"])
    array = _side_by_side(array)
    if array.shape[2] not in _COLOUR_TYPES:
        raise ValueError(f"an image has 1 to 4 channels, not {array.shape[2]}")
    return _as_bytes(array)


def _order(shape: Sequence[int]) -> str:
    names = {2: "HW", 3: "CHW", 4: "NCHW"}.get(len(shape))
    if names is None:
        raise ValueError(f"an image has 2 to 4 dimensions, not the shape {tuple(shape)}")
    is_last = len(shape) > 2 and shape[-1] in _COLOUR_TYPES and shape[-3] not in _COLOUR_TYPES
    return names.replace("CHW", "HWC") if is_last else names


def _side_by_side(images: Any) -> Any:
    """A batch as a grid of up to 8 columns."""
    numpy = _numpy()
    count, height, width, channels = images.shape
    columns = min(count, 8)
    rows = -(-count // columns) if count else 0
    if not images.size:
        raise ValueError("the image is empty")
    grid = numpy.zeros((rows * columns, height, width, channels), dtype=images.dtype)
    grid[:count] = images
    grid = grid.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    return grid.reshape(rows * height, columns * width, channels)


def _as_bytes(array: Any) -> Any:
    numpy = _numpy()
    if array.dtype == numpy.uint8:
        return array
    if array.dtype.kind == "b":
        return array.astype(numpy.uint8) * 255
    if array.dtype.kind in "iu":
        return numpy.clip(array, 0, 255).astype(numpy.uint8)
    numbers = numpy.nan_to_num(array.astype(numpy.float32), nan=0.0, posinf=1.0, neginf=0.0)
    scaled: Any = (numpy.clip(numbers, 0.0, 1.0) * 255.0 + 0.5).astype(numpy.uint8)
    return scaled


def png(pixels: Any) -> bytes:
    """Bytes of shape (height, width, channels) as a PNG file."""
    height, width, channels = pixels.shape
    lines = _numpy().zeros((height, 1 + width * channels), dtype="uint8")  # filter 0, then pixels
    lines[:, 1:] = pixels.reshape(height, width * channels)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 4)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _from_tensor(record: dict[str, Any], array: Any, dtype: str) -> Any:
    file = io.BytesIO()
    _numpy().save(file, array, allow_pickle=False)
    is_bits = dtype == "bfloat16"
    found = {} if is_bits else _summary(array)
    dtype = dtype if is_bits else array.dtype.name
    shape = json.dumps(list(array.shape))
    return {**record, "dtype": dtype, "shape": shape, **found}, (file.getvalue(), "npy")


def _summary(array: Any) -> dict[str, Any]:
    numpy = _numpy()
    if array.dtype.kind not in "fiub":
        return {}
    numbers = array.astype(numpy.float64).ravel()
    finite = numbers[numpy.isfinite(numbers)]
    counts = {"nan_count": int(numpy.isnan(numbers).sum())}
    if not len(finite):
        return counts
    with numpy.errstate(over="ignore"):
        mean = float(finite.mean())
    found = {"min": float(finite.min()), "max": float(finite.max()), **counts}
    return {**found, "mean": mean} if numpy.isfinite(mean) else found
