"""MindSpore's events, in the form of SummaryRecord: one value each."""

from urllib.parse import quote

import numpy as np

from strobe.ingest.formats.mindspore_summary.tensors import TYPES
from strobe.show.event_files import columns, messages
from strobe.show.event_files.arrays import Array, Bins, bins_of
from strobe.show.event_files.omissions import Omissions
from strobe.show.event_files.run_metrics import Row, Scalars

VERSION = "MindSpore.Event:1"

# Fields of Event and Summary.Value.
_WALL_TIME, _STEP, _VERSION, _GRAPH, _SUMMARY = 1, 2, 3, 4, 5
_TAG, _SCALAR, _IMAGE, _TENSOR, _HISTOGRAM, _LANDSCAPE = 1, 3, 4, 8, 9, 10
_FLOAT32, _BFLOAT16, _COMPLEX64, _COMPLEX128 = 11, 46, 43, 44
_TYPE_NUMBERS = {
    **{np.dtype(dtype): number for number, dtype in TYPES.items()},
    np.dtype("<c8"): _COMPLEX64, np.dtype("<c16"): _COMPLEX128,
}  # fmt: skip
_LONGEST_NAME = 255


def version(wall_time: float) -> bytes:
    return messages.double(_WALL_TIME, wall_time) + messages.text(_VERSION, VERSION)


def scalar_events(found: Scalars, tags: columns.Texts) -> columns.Column:
    with np.errstate(over="ignore"):
        value = columns.concatenated(
            columns.texts(_TAG, tags, found.tag), columns.floats(_SCALAR, found.value)
        )
    return columns.concatenated(
        columns.doubles(_WALL_TIME, found.wall_time), columns.integers(_STEP, found.step),
        columns.message(_SUMMARY, columns.message(1, value)),
    )  # fmt: skip


def event(row: Row, value: bytes, tag: str | None = None) -> bytes:
    named = messages.text(_TAG, row["tag"] if tag is None else tag)
    return b"".join((
        messages.double(_WALL_TIME, row["wall_time"]), messages.integer(_STEP, row["step"]),
        messages.data(_SUMMARY, messages.data(1, named, value)),
    ))  # fmt: skip


def graph_event(row: Row, data: bytes) -> bytes:
    return messages.double(_WALL_TIME, row["wall_time"]) + messages.data(_GRAPH, data)


def image(row: Row, encoded: bytes) -> bytes:
    """Its size is required: 0 where it is unknown."""
    size = b"".join(
        messages.integer(number, row[name] or 0)
        for number, name in enumerate(("height", "width", "channels"), 1)
    )
    return messages.data(_IMAGE, size, messages.data(4, encoded))


def histogram(row: Row, omissions: Omissions) -> bytes:
    bins = bins_of(row)
    whole = np.rint(bins.counts)
    omissions.add("fractional-counts", bool((whole != bins.counts).any()))
    omissions.add("histogram-sums", row["sum_squares"] is not None)
    counts = (row["nan_count"], row["positive_infinity_count"], row["negative_infinity_count"])
    sums = (row["max"], row["min"], row["sum"])
    return messages.data(
        _HISTOGRAM, *_buckets(Bins(bins.edges, whole)),
        *(messages.integer(number, count or 0) for number, count in enumerate(counts, 2)),
        *(messages.double(number, value or 0.0) for number, value in enumerate(sums, 5)),
        messages.integer(8, row["count"]),
    )  # fmt: skip


def _buckets(bins: Bins) -> list[bytes]:
    widths = np.diff(bins.edges)
    if len(widths):  # readers take left plus width as the last edge
        left, right = float(bins.edges[-2]), float(bins.edges[-1])
        widths[-1] = _width(left, right)
    return [
        messages.data(1, messages.double(1, left), messages.double(2, width),
                      messages.integer(3, int(count)))
        for left, width, count in zip(
            bins.edges[:-1].tolist(), widths.tolist(), bins.counts.tolist(), strict=True)
    ]  # fmt: skip


def _width(left: float, right: float) -> float:
    """A width that leads to the right edge in spite of rounding, if there is one."""
    width = right - left
    near = (width, np.nextafter(width, np.inf), np.nextafter(width, -np.inf))
    return next((float(each) for each in near if left + each == right), width)


def tensor(row: Row, array: Array) -> bytes:
    return messages.data(_TENSOR, tensor_message(array, row["dtype"]))


def tensor_message(array: Array, dtype: str = "") -> bytes:
    """All elements as float32, whatever their type is; their type is named."""
    number = _BFLOAT16 if dtype == "bfloat16" else _type_number(array)
    elements = np.real(array) if array.dtype.kind == "c" else array
    with np.errstate(over="ignore"):
        content = elements.astype("<f4").tobytes()
    dims = b"".join(messages.integer(1, size) for size in array.shape)
    return b"".join((dims, messages.integer(2, number), messages.data(3, content)))


def _type_number(array: Array) -> int:
    return _TYPE_NUMBERS.get(array.dtype.newbyteorder("<"), _FLOAT32)


def exact_name(row: Row) -> str | None:
    """The name of the .npy file with the exact elements; None if it would be too long."""
    name = f"{quote(row['tag'], safe='')}_{row['step']}.npy"
    return name if len(name) <= _LONGEST_NAME else None


def landscape(row: Row, message: bytes) -> bytes:
    return event(row, messages.data(_LANDSCAPE, message))
