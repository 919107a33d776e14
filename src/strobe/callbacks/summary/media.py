"""Pictures, sounds and curves that a SummaryWriter is given, as files and arrays.

numpy is only used where it is imported already: the values are its arrays.
"""

import importlib
import importlib.util
import io
import math
import sys
import wave
from collections.abc import Sequence
from typing import Any

from strobe.collect.metrics.arrays import picture

_SMALLEST = 1e-7  # a divisor that is not 0, as TensorBoard has it


def _numpy() -> Any:
    return sys.modules.get("numpy") or importlib.import_module("numpy")


def bins(
    low: float, high: float, limits: Sequence[float], counts: Sequence[int]
) -> tuple[list[float], list[int]]:
    """Increasing edges from right ones; bins that are empty at either end are left out."""
    filled = [place for place, count in enumerate(counts) if count]
    if not filled:
        return [low, max(high, math.nextafter(low, math.inf))], [0]
    first, last = filled[0], filled[-1]
    left = max(low, limits[first - 1]) if first else low
    edges = [left, *limits[first : last + 1]]
    edges[-1] = min(edges[-1], high)
    for place in range(1, len(edges)):
        if edges[place] <= edges[place - 1]:
            edges[place] = math.nextafter(edges[place - 1], math.inf)
    return edges, list(counts[first : last + 1])


def with_boxes(image: Any, order: str, boxes: Any) -> Any:
    """Red outlines; a box is its left, upper, right and lower edge in pixels."""
    numpy = _numpy()
    pixels = picture(image, order)
    drawn = pixels[..., :3].copy() if pixels.shape[2] >= 3 else numpy.repeat(pixels[..., :1], 3, 2)
    height, width = drawn.shape[:2]
    for box in boxes.reshape(-1, 4):
        limits = (width, height, width, height)
        left, top, right, bottom = (
            min(max(int(edge), 0), limit - 1) for edge, limit in zip(box, limits, strict=True)
        )
        for row in (top, bottom):
            drawn[row, left : right + 1] = (255, 0, 0)
        for column in (left, right):
            drawn[top : bottom + 1, column] = (255, 0, 0)
    return drawn


def close_figure(figure: Any) -> None:
    plots = sys.modules.get("matplotlib.pyplot")
    if plots is not None:
        plots.close(figure)


def has_pillow() -> bool:
    return importlib.util.find_spec("PIL") is not None


def gif(frames: Any, per_second: float) -> bytes:
    """Of frames with the dimensions TCHW."""
    images = importlib.import_module("PIL.Image")
    drawn = []
    for frame in frames:
        pixels = picture(frame, "CHW")
        drawn.append(images.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels))
    file = io.BytesIO()
    drawn[0].save(file, "GIF", save_all=True, append_images=drawn[1:], loop=0,
                  duration=int(1000 / per_second))  # fmt: skip
    return file.getvalue()


def wav(samples: Any, rate: int) -> bytes:
    """Numbers from -1 to 1, in one channel."""
    numpy = _numpy()
    clipped = numpy.clip(numpy.nan_to_num(samples.astype("float64")).reshape(-1), -1.0, 1.0)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes((clipped * 32767).astype("<i2").tobytes())
    return file.getvalue()


def as_bytes_array(data: bytes) -> Any:
    return _numpy().frombuffer(data, dtype="uint8")


def stacked(rows: Sequence[Any]) -> Any:
    return _numpy().stack([row.astype("float64").reshape(-1) for row in rows])


def precision_and_recall(labels: Any, predictions: Any, thresholds: int, weights: Any) -> Any:
    """At evenly spaced thresholds from 0 to 1: six rows, as TensorBoard's pr_curves plugin."""
    numpy = _numpy()
    labels = labels.reshape(-1).astype(bool)
    weights = numpy.ones(len(labels)) if weights is None else weights.reshape(-1)
    bucket = numpy.floor(predictions.reshape(-1) * (thresholds - 1)).astype(int)
    bucket = numpy.clip(bucket, 0, thresholds - 1)
    at_least = [
        numpy.bincount(bucket, is_so * weights, thresholds)[::-1].cumsum()[::-1]
        for is_so in (labels, ~labels)
    ]
    true, false = at_least
    missed, rejected = true[0] - true, false[0] - false
    precision = true / numpy.maximum(_SMALLEST, true + false)
    recall = true / numpy.maximum(_SMALLEST, true + missed)
    return numpy.stack((true, false, rejected, missed, precision, recall))
