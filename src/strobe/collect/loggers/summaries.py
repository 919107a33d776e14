"""Protocol buffers that TensorBoard's writers make: `Summary`, with values of many kinds."""

import json
import math
import sys
from typing import Any

from strobe.collect.loggers.calls import Values
from strobe.collect.metrics.log import Job
from strobe.collect.metrics.records import whole_number
from strobe.model.metric_journal import HISTOGRAM, IMAGE, TENSOR

_NOT_AN_EDGE = 1e308  # the outermost limits stand for infinity
_STRINGS = 7
# Types of TensorProto's elements, and where those are that are not in `tensor_content`.
_DTYPES = {
    1: ("float32", "float_val"), 2: ("float64", "double_val"), 3: ("int32", "int_val"),
    4: ("uint8", "int_val"), 5: ("int16", "int_val"), 6: ("int8", "int_val"),
    9: ("int64", "int64_val"), 10: ("bool", "bool_val"),
}  # fmt: skip
_FORMATS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
_HPARAMS = "hparams"
# Of no use outside TensorBoard's pages: how they arrange charts.
_LAYOUTS = ("custom_scalars",)


def take_summary(values: Values, summary: Any, prefix: str, step: Any, ts_ns: int) -> None:
    for value in summary.value:
        tag, kind = prefix + value.tag, value.WhichOneof("value")
        plugin = value.metadata.plugin_data.plugin_name
        if plugin == _HPARAMS:
            values.hyperparameters(_hyperparameters(value.metadata.plugin_data.content))
        elif kind == "simple_value":
            values.scalars({tag: value.simple_value}, step, ts_ns)
        elif kind == "tensor" and plugin not in _LAYOUTS:
            _take_tensor(values, tag, value.tensor, plugin, step, ts_ns)
        elif kind == "histo":
            values.submit(
                *_histogram_job(record_of(values, HISTOGRAM, tag, step, ts_ns), value.histo)
            )
        elif kind == "image":
            values.submit(*_image_job(record_of(values, IMAGE, tag, step, ts_ns), value.image))
        elif kind == "audio":
            data = value.audio.encoded_audio_string
            values.submit(*bytes_job(values, tag, data, "audio", step, ts_ns))


def record_of(values: Values, kind: str, tag: str, step: Any, ts_ns: int) -> dict[str, Any]:
    return {
        "type": kind, "monotonic_ns": ts_ns, "tag": tag, "step": whole_number(step),
        "source": values.source,
    }  # fmt: skip


def bytes_job(
    values: Values, tag: str, data: bytes, plugin: str, step: Any, ts_ns: int
) -> tuple[Job, int]:
    """Bytes that only their plugin understands, as a tensor of them."""
    record = record_of(values, TENSOR, tag, step, ts_ns)

    def job() -> Any:
        numpy = sys.modules["numpy"]
        return _tensor(record, numpy.frombuffer(data, dtype=numpy.uint8), plugin)

    return job, len(data)


def binned(edges: list[float], counts: list[float]) -> dict[str, Any]:
    """The columns of a histogram whose values are not known beyond its bins."""
    return {
        "nan_count": 0, "positive_infinity_count": 0, "negative_infinity_count": 0,
        "edges": json.dumps(edges), "counts": json.dumps([_whole(count) for count in counts]),
    }  # fmt: skip


def _whole(count: float) -> float:
    return int(count) if float(count).is_integer() else count


def _histogram_job(record: dict[str, Any], proto: Any) -> tuple[Job, int]:
    return lambda: ({**record, **_histogram(proto)}, None), proto.ByteSize()


def _histogram(proto: Any) -> dict[str, Any]:
    """Edges around the bins that contain something."""
    limits, counts = list(proto.bucket_limit), list(proto.bucket)
    filled = [place for place, count in enumerate(counts) if count > 0]
    edges: list[float] = []
    if filled:
        first, last = filled[0], filled[-1]
        edges = [limits[first - 1] if first else -math.inf, *limits[first : last + 1]]
        counts = counts[first : last + 1]
        if edges[0] <= -_NOT_AN_EDGE:
            edges[0] = min(proto.min, edges[1])
        if edges[-1] >= _NOT_AN_EDGE:
            edges[-1] = max(proto.max, edges[-2])
    else:
        counts = []
    is_empty = not proto.num
    return {
        "count": int(proto.num), "min": None if is_empty else proto.min,
        "max": None if is_empty else proto.max, "sum": proto.sum,
        "sum_squares": proto.sum_squares, **binned(edges, counts),
    }  # fmt: skip


def _image_job(record: dict[str, Any], image: Any) -> tuple[Job, int]:
    data = image.encoded_image_string
    found = next((name for head, name in _FORMATS.items() if data.startswith(head)), "bin")
    size = {
        "width": image.width or None, "height": image.height or None,
        "channels": image.colorspace or None, "index": 0, "format": found,
    }  # fmt: skip
    return lambda: ({**record, **size}, (data, found)), len(data)


def _take_tensor(values: Values, tag: str, proto: Any, plugin: str, step: Any, ts_ns: int) -> None:
    if proto.dtype == _STRINGS:
        text = b"\n".join(proto.string_val).decode("utf-8", "replace")
        if plugin in ("text", ""):
            values.text(tag, text, step, ts_ns)
        return
    dtype, field = _DTYPES[proto.dtype]
    if plugin == "scalars":
        values.scalars({tag: _array(proto, dtype, field).item()}, step, ts_ns)
        return
    record = record_of(values, TENSOR, tag, step, ts_ns)
    name = None if plugin in ("", "tensor") else plugin
    size = proto.ByteSize()
    values.submit(lambda: _tensor(record, _array(proto, dtype, field), name), size)


def _array(proto: Any, dtype: str, field: str) -> Any:
    numpy = sys.modules["numpy"]
    shape = [dimension.size for dimension in proto.tensor_shape.dim]
    if proto.tensor_content:
        return numpy.frombuffer(proto.tensor_content, dtype=dtype).reshape(shape)
    found = numpy.array(list(getattr(proto, field)), dtype=dtype)
    if found.size == 1 and math.prod(shape) > 1:  # one value stands for all
        found = numpy.full(math.prod(shape), found[0])
    return found.reshape(shape)


def _tensor(record: dict[str, Any], array: Any, plugin: str | None) -> Any:
    from strobe.collect.metrics.arrays import tensor_job

    job, _ = tensor_job(record["tag"], array, record["step"], record["source"], plugin)
    found, file = job()
    if plugin and array.dtype == "uint8":  # bytes have no mean
        found = {name: found[name] for name in found if name not in _SUMMARY}
    return {**found, "monotonic_ns": record["monotonic_ns"]}, file


_SUMMARY = ("min", "max", "mean", "nan_count")


def _hyperparameters(content: bytes) -> dict[str, Any]:
    """What TensorBoard's hparams plugin is given, if this is the part with the values."""
    data = _hparams_proto()
    if data is None:
        return {}
    data.ParseFromString(content)
    if data.WhichOneof("data") != "session_start_info":
        return {}
    return {
        name: getattr(value, value.WhichOneof("kind") or "", None)
        for name, value in data.session_start_info.hparams.items()
    }


def _hparams_proto() -> Any:
    for name in (
        "tensorboard.plugins.hparams.plugin_data_pb2",
        "tensorboardX.proto.plugin_hparams_pb2",
    ):
        if name in sys.modules:
            return sys.modules[name].HParamsPluginData()
    return None
