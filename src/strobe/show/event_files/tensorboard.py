"""TensorBoard's events: one value each, with what its plugin needs to show it."""

import math
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats.event_files.facts import fact
from strobe.ingest.formats.tensorboard import hparams
from strobe.ingest.formats.tensorboard.tensors import DTYPES
from strobe.model.manifest import Manifest
from strobe.show.event_files import columns, messages
from strobe.show.event_files.arrays import Array, bins_of, is_bytes
from strobe.show.event_files.run_metrics import RankMetrics, Row, Scalars

VERSION = "brain.Event:2"

# Fields of Event and Summary.Value.
_WALL_TIME, _STEP, _VERSION, _GRAPH, _SUMMARY, _SESSION, _RUN_METADATA, _META_GRAPH = (
    1, 2, 3, 4, 5, 7, 8, 9
)  # fmt: skip
_TAG, _SIMPLE_VALUE, _IMAGE, _HISTOGRAM, _TENSOR, _METADATA = 1, 2, 4, 5, 8, 9
_START = 1
# Kinds of data that SummaryMetadata names.
_OF_TENSORS, _OF_BLOBS = 2, 3
_STRING, _BFLOAT16 = 7, 14
_BLOB_PLUGINS = {"images", "audio"}
_GRAPHS = {"graph_def": _GRAPH, "meta_graph_def": _META_GRAPH}
_WAV_ENCODING = 11
_MESH_PARTS = {"VERTEX": 1, "FACE": 2, "COLOR": 3}
_SUCCESS, _FAILURE, _RUNNING = 1, 2, 3
_STATUS = {"finished": _SUCCESS, "recording": _RUNNING}
_NOT_FINITE = ("nan_count", "positive_infinity_count", "negative_infinity_count")
_TYPE_NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items() if number != _BFLOAT16}
_NO_BINS = np.zeros((0, 3))
_LARGEST = float(np.finfo(np.float64).max)


class Value(NamedTuple):
    """One value, encoded, and where it belongs."""

    wall_time: float
    step: int
    message: bytes

    def event(self) -> bytes:
        return b"".join((
            messages.double(_WALL_TIME, self.wall_time), messages.integer(_STEP, self.step),
            messages.data(_SUMMARY, messages.data(1, self.message)),
        ))  # fmt: skip


def version(wall_time: float) -> bytes:
    return messages.double(_WALL_TIME, wall_time) + messages.text(_VERSION, VERSION)


def restart(wall_time: float, step: int) -> bytes:
    """A session that starts at this step, as a resumed training writes it."""
    return b"".join((
        messages.double(_WALL_TIME, wall_time), messages.integer(_STEP, step),
        messages.data(_SESSION, messages.integer(1, _START)),
    ))  # fmt: skip


def scalar_events(found: Scalars, tags: columns.Texts) -> columns.Column:
    """As float32: TensorBoard's default loader shows no point of a float64."""
    with np.errstate(over="ignore"):
        value = columns.concatenated(
            columns.texts(_TAG, tags, found.tag), columns.floats(_SIMPLE_VALUE, found.value)
        )
    return columns.concatenated(
        columns.doubles(_WALL_TIME, found.wall_time), columns.integers(_STEP, found.step),
        columns.message(_SUMMARY, columns.message(1, value)),
    )  # fmt: skip


def histogram(row: Row, tag: str) -> bytes:
    """Without a sum it comes from a tensor of bins, and becomes one."""
    edges, counts = bins_of(row)
    edges = np.clip(edges, -_LARGEST, _LARGEST)
    if row["sum"] is None:
        table = np.stack([edges[:-1], edges[1:], counts], axis=1) if len(counts) else _NO_BINS
        return _tensor_value(tag, _numbers(table), "histograms")
    finite = row["count"] - sum(row[name] or 0 for name in _NOT_FINITE)
    squares = math.nan if row["sum_squares"] is None else row["sum_squares"]
    single = (row["min"] or 0.0, row["max"] or 0.0, float(finite), row["sum"], squares)
    # The left edge of the first bin is the limit of an empty bin before it.
    before = np.zeros(1 if len(counts) else 0)
    proto = b"".join((
        *(messages.double(number, value) for number, value in enumerate(single, 1)),
        messages.data(6, edges.astype("<f8").tobytes()),
        messages.data(7, np.concatenate([before, counts]).astype("<f8").tobytes()),
    ))  # fmt: skip
    return messages.text(_TAG, tag) + messages.data(_HISTOGRAM, proto)


def not_finite(row: Row) -> bool:
    return any(row[name] for name in _NOT_FINITE)


def image(row: Row, tag: str, encoded: bytes) -> bytes:
    size = b"".join(
        messages.integer(number, row[name])
        for number, name in enumerate(("height", "width", "channels"), 1) if row[name] is not None
    )  # fmt: skip
    return messages.text(_TAG, tag) + messages.data(_IMAGE, size, messages.data(4, encoded))


def image_batch(rows: list[Row], tag: str, encoded: list[bytes]) -> bytes:
    """Images that were logged together."""
    size = [str(rows[0][name] or 0).encode() for name in ("width", "height")]
    return _tensor_value(tag, _strings([*size, *encoded], [len(encoded) + 2]), "images")


def text(row: Row, tag: str) -> bytes:
    return _tensor_value(tag, _strings([row["text"].encode("utf-8", "replace")], [1]), "text")


def graph_event(row: Row, data: bytes) -> bytes | None:
    """None if the row is not a graph in TensorBoard's form."""
    start = messages.double(_WALL_TIME, row["wall_time"]) + messages.integer(_STEP, row["step"])
    if row["plugin"] in _GRAPHS:
        return start + messages.data(_GRAPHS[row["plugin"]], data)
    if row["plugin"] == "run_metadata":
        return start + messages.data(_RUN_METADATA, data)
    return None


def tensor(row: Row, tag: str, array: Array, mesh_parts: int) -> bytes:
    """`mesh_parts` has a bit for each part of the mesh that the tag belongs to."""
    plugin = row["plugin"] or "tensor"
    if is_bytes(array, row):
        if plugin == "audio":
            is_wav = array[:4].tobytes() == b"RIFF"
            content = messages.integer(2, _WAV_ENCODING) if is_wav else b""
            return _tensor_value(tag, _strings([array.tobytes(), b""], [1, 2]), plugin, content)
        return _tensor_value(tag, _strings([array.tobytes()], []), plugin)
    content = b""
    if plugin == "pr_curves" and array.ndim == 2:
        content = messages.integer(2, array.shape[1])
    elif plugin == "mesh":
        content = _mesh(tag, array, mesh_parts)
    return _tensor_value(tag, _numbers(array, row["dtype"]), plugin, content)


def mesh_part(tag: str) -> tuple[str, int]:
    """The name of the mesh, and the bit of its part; 0 if the tag names none."""
    name, _, part = tag.rpartition("_")
    return (name, 1 << _MESH_PARTS[part]) if part in _MESH_PARTS else (tag, 0)


def _mesh(tag: str, array: Array, parts: int) -> bytes:
    name, bit = mesh_part(tag)
    return b"".join((
        messages.text(2, name), messages.integer(3, max(0, bit.bit_length() - 1)),
        messages.text(5, "{}"), messages.data(6, *map(messages.varint, array.shape)),
        messages.integer(7, parts),
    ))  # fmt: skip


def hyperparameters(metrics: RankMetrics, manifest: Manifest) -> list[Value]:
    """The session of the hparams plugin; an experiment would hide those of other runs."""
    rows = metrics.facts("hyperparameters")
    if not rows:
        return []
    entries = [messages.map_entry(1, row["name"], _setting(row, metrics)) for row in rows]
    started = metrics.started_s
    ended_ns = manifest.ended_unix_ns or manifest.started_unix_ns
    start = messages.data(3, *entries, messages.double(5, started))
    status = messages.integer(1, _STATUS.get(manifest.state, _FAILURE))
    end = messages.data(4, status, messages.double(2, ended_ns / 1e9))
    return [
        Value(started, 0, messages.text(_TAG, tag) + _metadata("hparams", content))
        for tag, content in ((hparams.START, start), (hparams.TAGS[-1], end))
    ]


def _setting(row: Row, metrics: RankMetrics) -> bytes:
    """A google.protobuf.Value in an entry of a map."""
    value, number = row["value"], row["number"]
    if number is not None and np.isfinite(number) and fact(number)["value"] == fact_text(value):
        return messages.data(2, messages.double(2, number))
    if value in ("true", "false"):
        return messages.data(2, messages.integer(4, value == "true"))
    if number is not None:
        metrics.omissions.add("inexact-hyperparameters")
    return messages.data(2, messages.text(3, value))


def fact_text(value: str) -> str:
    """The text of a number in the form that reading it back gives: 0.001 for 1e-3."""
    try:
        return str(fact(float(value))["value"]) if not value.isdigit() else value
    except ValueError:
        return value


def _tensor_value(tag: str, proto: bytes, plugin: str, content: bytes = b"") -> bytes:
    return b"".join((
        messages.text(_TAG, tag), messages.data(_TENSOR, proto), _metadata(plugin, content),
    ))  # fmt: skip


def _metadata(plugin: str, content: bytes = b"") -> bytes:
    kind = _OF_BLOBS if plugin in _BLOB_PLUGINS else _OF_TENSORS
    of_plugin = messages.text(1, plugin) + (messages.data(2, content) if content else b"")
    return messages.data(_METADATA, messages.data(1, of_plugin), messages.integer(4, kind))


def _numbers(array: Array, dtype: str = "") -> bytes:
    if dtype == "bfloat16":  # the upper half of a float32
        number = _BFLOAT16
        content = (array.astype("<f4").view(np.uint32) >> np.uint32(16)).astype("<u2")
    else:
        content = array.astype(array.dtype.newbyteorder("<"))
        number = _TYPE_NUMBERS[content.dtype]
    return messages.integer(1, number) + _shape(array.shape) + messages.data(4, content.tobytes())


def _strings(values: list[bytes], shape: list[int]) -> bytes:
    return b"".join((
        messages.integer(1, _STRING), _shape(shape), *(messages.data(8, value) for value in values),
    ))  # fmt: skip


def _shape(sizes: Any) -> bytes:
    return messages.data(2, *(messages.data(2, messages.integer(1, size)) for size in sizes))
