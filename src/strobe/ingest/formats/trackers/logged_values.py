"""Values that experiment trackers log, as rows: numbers as columns, everything else one by one."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.formats.event_files.facts import fact
from strobe.ingest.formats.event_files.histogram_rows import as_json
from strobe.ingest.formats.event_files.pictures import picture
from strobe.ingest.formats.event_files.tensor_rows import add_bytes, add_image, add_tensor
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import UNKNOWN, Metrics

Say = Callable[[str, int], None]
Row = dict[str, Any]

TYPE = "_type"
EPOCH_TAGS = ("epoch", "train/epoch")
SYSTEM = "system/"  # before the tags of what a tracker measured of the machine
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DEEPEST = 50  # objects within objects
_LONGEST_TEXT = 1 << 20  # bytes; larger tables are files
_TOO_DEEP = "objects within too many others were left out"
_MOST = 2**62  # values in a histogram
_PICTURES = ("png", "jpeg", "gif", "bmp", "webp")


def as_number(value: Any) -> float | None:
    """The number that a logged value is; None if it is not one. Raises OverflowError."""
    if isinstance(value, (int, float)):  # booleans too: 1 and 0
        return float(value)
    return _NOT_FINITE.get(value) if isinstance(value, str) else None


def flattened(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The values of objects within objects, with a dot between the names."""
    if isinstance(value, dict) and value and TYPE not in value and depth < _DEEPEST:
        for key, part in value.items():
            yield from flattened(part, f"{name}.{key}" if name else str(key), depth + 1)
    else:
        yield name, value


def is_media(value: Any) -> bool:
    """Whether a logged value is an object with a type: an image, a histogram."""
    return isinstance(value, dict) and isinstance(value.get(TYPE), str)


class LoggedValues:
    """Takes the values of one run; files are below `media`, the folder that paths count from."""

    def __init__(self, metrics: Metrics, source: str, media: Path | None, say: Say) -> None:
        self.metrics, self.source, self.say = metrics, source, say
        self._media = media
        self._scalars = metrics["scalars"]
        self.tags = self._scalars.codes["tag"]
        self._source_code = self._scalars.codes["source"][source]

    def add_scalars(
        self, tag: Array, step: Array, ts_ns: Array, value: Array, epoch: Array | None = None
    ) -> None:
        """Numbers, with the number of each one's tag in `tags`."""
        count = len(tag)
        if not count:
            return
        columns = {
            "tag": tag.astype(np.int32), "step": step, "ts_ns": ts_ns, "value": value,
            "source": np.full(count, self._source_code, dtype=np.int8),
            "attempt": np.ones(count, dtype=np.int32),
        }  # fmt: skip
        self._scalars.add(columns if epoch is None else {**columns, "epoch": epoch})

    def add_facts(self, kind: str, facts: dict[str, Any]) -> None:
        """Rows of `lineage`; what is empty is left out."""
        for name, value in facts.items():
            if value not in ("", None, [], {}):
                self._add_fact("lineage", name, value, kind=kind)

    def add_hyperparameters(self, config: dict[str, Any]) -> None:
        for name, value in flattened(config):
            if name:
                self._add_fact("hyperparameters", name, value)

    def add_text_hyperparameters(self, settings: dict[str, str]) -> None:
        """Of a tracker that stores all values as text."""
        for name, text in settings.items():
            self.metrics["hyperparameters"].add_row(
                name=name, value=text, number=_number_of(text), source=self.source
            )

    def take(self, tag: str, value: Any, step: int, ts_ns: int) -> None:
        """One value of any type."""
        row = {
            "tag": tag, "step": None if step == UNKNOWN else step,
            "ts_ns": None if ts_ns == UNKNOWN else ts_ns, "source": self.source, "attempt": 1,
        }  # fmt: skip
        for name, part in flattened(value, tag):
            try:
                self._take({**row, "tag": name}, part)
            except RecursionError:
                self.say(_TOO_DEEP, 1)

    def _add_fact(self, table: str, name: str, value: Any, **row: Any) -> None:
        try:
            columns = _fact(value)
        except RecursionError:
            self.say(_TOO_DEEP, 1)
            return
        self.metrics[table].add_row(name=name, **columns, source=self.source, **row)

    def _take(self, row: Row, value: Any) -> None:
        if value is None:
            return
        try:
            number = as_number(value)
        except OverflowError:
            self.say("numbers beyond the range of float64 were left out", 1)
            return
        if number is not None:
            self._take_number(row, number)
        elif isinstance(value, str):
            self.metrics["texts"].add_row(text=value, **row)
        elif isinstance(value, dict):
            self._take_object(row, value)
        else:
            self._take_list(row, value)

    def _take_number(self, row: Row, number: float) -> None:
        step, ts_ns = (UNKNOWN if row[key] is None else row[key] for key in ("step", "ts_ns"))
        self.add_scalars(
            np.array([self.tags[row["tag"]]]), np.array([step]), np.array([ts_ns]),
            np.array([number]),
        )  # fmt: skip

    def _take_list(self, row: Row, values: Any) -> None:
        if isinstance(values, list) and values and all(is_media(value) for value in values):
            for index, value in enumerate(values):
                self._take_object(row, value, index)
            return
        array = _as_array(values)
        if array is not None:
            add_tensor(self.metrics, array, **row)
        else:
            self.metrics["texts"].add_row(text=json.dumps(values, ensure_ascii=False), **row)

    def _take_object(self, row: Row, value: dict[str, Any], index: int = 0) -> None:
        kind = value.get(TYPE)
        if not isinstance(kind, str):  # {} and objects that are too deep
            self.metrics["texts"].add_row(text=json.dumps(value, ensure_ascii=False), **row)
            return
        kind = kind.removeprefix("trackio.").removesuffix("-file")
        if kind == "histogram":
            self._add_histogram(row, value)
        elif kind in ("table", "partitioned-table", "joined-table") and "_value" in value:
            self._add_text(row, json.dumps(value["_value"], ensure_ascii=False), "table")
        elif kind == "markdown" and isinstance(value.get("_value"), str):
            self.metrics["texts"].add_row(text=value["_value"], **row)
        elif kind.startswith("images"):
            self._add_images(row, value)
        else:
            path = value.get("path", value.get("file_path"))
            self._add_file(row, path, kind, index, value)

    def _add_histogram(self, row: Row, value: dict[str, Any]) -> None:
        counts, edges = _bins(value)
        is_sound = (
            counts is not None and edges is not None and counts.ndim == edges.ndim == 1
            and len(edges) == len(counts) + 1 and np.isfinite(edges).all()
            and bool((counts >= 0).all()) and counts.sum() < _MOST
        )  # fmt: skip
        if not is_sound or counts is None or edges is None:
            self.say("histograms that contradict themselves were left out", 1)
            return
        count = int(counts.sum())
        self.metrics["histograms"].add_row(
            count=count, nan_count=0, positive_infinity_count=0, negative_infinity_count=0,
            min=float(edges[0]) if count else None, max=float(edges[-1]) if count else None,
            edges=as_json(edges), counts=as_json(counts), **row,
        )  # fmt: skip

    def _add_images(self, row: Row, value: dict[str, Any]) -> None:
        names = value.get("filenames")
        for index, name in enumerate(names if isinstance(names, list) else []):
            self._add_file(row, name, "image", index, value)

    def _add_file(self, row: Row, path: Any, kind: str, index: int, value: dict[str, Any]) -> None:
        data = self._content(path)
        if data is None:
            return
        if kind in ("image", "video") and picture(data).format in _PICTURES:
            size = tuple(value.get(key) for key in ("width", "height"))
            width, height = (one if isinstance(one, int) else None for one in size)
            add_image(self.metrics, data, (width, height, None), index=index, **row)
        elif kind in ("table", "html", "markdown"):
            self._add_text(row, data.decode("utf-8", "replace"), kind)
        else:
            add_bytes(self.metrics, data, kind, **row)

    def _add_text(self, row: Row, text: str, kind: str) -> None:
        if len(text) <= _LONGEST_TEXT:
            self.metrics["texts"].add_row(text=text, **row)
        else:
            add_bytes(self.metrics, text.encode("utf-8", "replace"), kind, **row)

    def _content(self, name: Any) -> bytes | None:
        """The bytes of a media file, if it is where it belongs: paths may lead anywhere."""
        if not isinstance(name, str) or self._media is None or "\0" in name:
            self.say("media without a file were left out", 1)
            return None
        try:
            path = (self._media / name).resolve()
            if path.is_relative_to(self._media.resolve()) and path.is_file():
                return path.read_bytes()
        except (OSError, RuntimeError):  # RuntimeError: links in a circle
            self.say("media files cannot be read", 1)
            return None
        self.say("media files are missing beside the run", 1)
        return None


def _fact(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value in _NOT_FINITE:
        value = _NOT_FINITE[value]
    return fact(value)


def _number_of(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) or "_" in text else number


def _as_array(values: Any) -> Array | None:
    """A list of numbers, or of lists of the same length; None for anything else."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError, RecursionError):
        return None
    return array if array.dtype.kind in "fiub" and array.size else None


def _bins(value: dict[str, Any]) -> tuple[Array | None, Array | None]:
    counts, edges = _numbers(value.get("values")), _numbers(value.get("bins"))
    packed = value.get("packedBins")
    if edges is None and counts is not None and isinstance(packed, dict):
        least, size = (_numbers([packed.get(key)]) for key in ("min", "size"))
        if least is not None and size is not None:
            edges = least[0] + size[0] * np.arange(len(counts) + 1)
    return counts, edges


def _numbers(values: Any) -> Array | None:
    array = _as_array(values)
    return None if array is None else array.astype(np.float64)
