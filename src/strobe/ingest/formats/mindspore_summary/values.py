"""The values of MindSpore's events as rows."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.formats.event_files.histogram_rows import as_json
from strobe.ingest.formats.event_files.messages import floats
from strobe.ingest.formats.event_files.tensor_rows import add_tensor
from strobe.ingest.formats.event_files.value_rows import Batch, Row, Say, ValueRows
from strobe.ingest.formats.mindspore_summary import tensors
from strobe.ingest.formats.mindspore_summary.exported import Exported
from strobe.ingest.formats.xplane.wire import BYTES, FIXED32, fields, signed
from strobe.ingest.trace.metric_rows import Metrics

SOURCE = "mindspore"

_SCALAR, _IMAGE, _TENSOR, _HISTOGRAM, _LANDSCAPE = 3, 4, 8, 9, 10
_BUCKET, _NAN, _POSITIVE, _NEGATIVE, _MAX, _MIN, _SUM, _COUNT = 1, 2, 3, 4, 5, 6, 7, 8
_MOST = 2**62
_ROUNDED = (
    "MindSpore rounded a tensor of more than 32 bits per element to float32; export_options="
    "{'tensor_format': 'npy'} of SummaryCollector keeps it exact"
)
LANDSCAPE = "loss_landscape"


class Values(ValueRows):
    """Takes the values of one folder."""

    def __init__(self, metrics: Metrics, say: Say, folder: Path) -> None:
        super().__init__(metrics, SOURCE, say)
        self.exported = Exported(folder)

    def take(self, batch: Batch) -> None:
        found = batch.events
        scalar = found.parts.of(_SCALAR, FIXED32)
        self.add_scalars(batch, scalar.owner, floats(found.block, scalar.start))
        others = {
            _IMAGE: self.add_image, _TENSOR: self._tensor, _HISTOGRAM: self._histogram,
            _LANDSCAPE: self._landscape,
        }  # fmt: skip
        for number, take in others.items():
            self.each(batch, found.parts.of(number, BYTES), take)

    def _tensor(self, data: bytes, row: Row, tag: int) -> None:
        array = self.exported.take(row["tag"], row["step"])
        is_rounded = False
        if array is None:
            try:
                array, is_rounded = tensors.safely(data, self.broken)
            except tensors.Unreadable as error:
                self.say(f"a tensor was left out: {error}", 1)
                return
        if is_rounded:
            self.say(_ROUNDED, 1)
        add_tensor(self.metrics, array, **row)

    def _histogram(self, data: bytes, row: Row, tag: int) -> None:
        self.add_histogram(_histogram(data, self.broken), row)

    def _landscape(self, data: bytes, row: Row, tag: int) -> None:
        """Its arrays as tensors below its tag, and what it says of itself as a text."""
        for number, part in fields(data, self.broken):
            if not isinstance(part, bytes):
                continue
            if number in (1, 4):
                self._points(part, {1: "", 4: "/convergence"}[number], row)
            elif number == 2:
                self._path(part, row)
            elif number == 3:
                text = json.dumps(_metadata(part, self.broken))
                self.metrics["texts"].add_row(text=text, **{**row, "tag": f"{row['tag']}/metadata"})

    def _path(self, data: bytes, row: Row) -> None:
        intervals: list[int] = []
        for number, part in fields(data, self.broken):
            if number == 1:
                intervals += tensors.integers(part)
            elif number == 2 and isinstance(part, bytes):
                self._points(part, "/path", row)
        if intervals:
            self._add(np.array(intervals), "/path/intervals", row)

    def _points(self, data: bytes, place: str, row: Row) -> None:
        for number, part in fields(data, self.broken):
            axis = {1: "x", 2: "y", 3: "z"}.get(number)
            if axis is None or not isinstance(part, bytes) or not part:
                continue
            try:
                array, _ = tensors.safely(part, self.broken)
            except tensors.Unreadable as error:
                self.say(f"a part of a loss landscape was left out: {error}", 1)
            else:
                self._add(array, f"{place}/{axis}", row)

    def _add(self, array: Any, place: str, row: Row) -> None:
        row = {**row, "tag": row["tag"] + place}
        add_tensor(self.metrics, array, plugin=LANDSCAPE, **row)


def _metadata(data: bytes, broken: Any) -> dict[str, Any]:
    names = {1: "decomposition", 2: "unit", 3: "step_per_epoch"}
    return {
        names[number]: value if isinstance(value, int) else value.decode("utf-8", "replace")
        for number, value in fields(data, broken)
        if number in names
    }


def _histogram(data: bytes, broken: Any) -> Row | None:
    """A row of `histograms`; None if it makes no sense."""
    buckets: list[tuple[float, float, int]] = []
    counts = dict.fromkeys((_NAN, _POSITIVE, _NEGATIVE, _COUNT), 0)
    sums = dict.fromkeys((_MAX, _MIN, _SUM), 0.0)
    for number, value in fields(data, broken):
        if number == _BUCKET and isinstance(value, bytes):
            buckets.append(_bucket(value, broken))
        elif number in counts and isinstance(value, int):
            counts[number] = signed(value)
        elif number in sums and isinstance(value, bytes) and len(value) == 8:
            sums[number] = struct.unpack("<d", value)[0]
    if not all(0 <= count < _MOST for count in counts.values()):
        return None
    left, width, count = (np.array([b[k] for b in buckets], dtype=float) for k in range(3))
    edges = np.append(left, left[-1:] + width[-1:])
    finite = counts[_COUNT] - counts[_NAN] - counts[_POSITIVE] - counts[_NEGATIVE]
    return {
        "count": counts[_COUNT], "nan_count": counts[_NAN],
        "positive_infinity_count": counts[_POSITIVE], "negative_infinity_count": counts[_NEGATIVE],
        "min": sums[_MIN] if finite > 0 else None, "max": sums[_MAX] if finite > 0 else None,
        "sum": sums[_SUM], "edges": as_json(edges), "counts": as_json(count),
    }  # fmt: skip


def _bucket(data: bytes, broken: Any) -> tuple[float, float, int]:
    left = width = 0.0
    count = 0
    for number, value in fields(data, broken):
        if number == 3 and isinstance(value, int):
            count = signed(value)
        elif isinstance(value, bytes) and len(value) == 8:
            (side,) = struct.unpack("<d", value)
            left, width = (side, width) if number == 1 else (left, side)
    return left, width, count
