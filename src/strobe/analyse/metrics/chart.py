"""Charts of scalars: what to draw of each tag, for any range of steps or time and any width.

Where a pixel has several points, all of them are counted, with the first and last, the smallest and
largest, NaN and infinities: nothing extreme is hidden at any zoom. Where there are at most as many
points as pixels, the points themselves are given.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from strobe.analyse.metrics import levels
from strobe.analyse.metrics.levels import Sums
from strobe.analyse.metrics.lines import Points
from strobe.analyse.metrics.pyramid import Line, Pyramid, pyramids
from strobe.analyse.metrics.smoothing import Smoothing, smoothed
from strobe.errors import UsageError
from strobe.store.array_file import Array
from strobe.store.nullable import UNKNOWN
from strobe.store.run import Run

# `relative` counts nanoseconds since the run began, `time` since 1970.
AXES = ("step", "time", "relative")
MOST_PIXELS = 16_384
# Smoothed curves that are kept for the next zoom, and the points they may have together.
_MOST_SMOOTHED, _MOST_SMOOTHED_POINTS = 64, 40_000_000


# Rank, tag, source and attempt; None for all attempts together.
_Series = tuple[int, str, str, "int | None"]


class Curve(NamedTuple):
    """What to draw of a tag.

    `columns` has either points (`is_exact`) or pixels.

    Points: `step`, `ts_ns` and `value`, from the point before the stretch to the one after it, and
    `smoothed` with smoothing.
    Pixels: a row for each that has points, with `pixel`, `count`, `nan_count`,
    `positive_infinity_count`, `negative_infinity_count`, `sum` of the finite values, and `first`,
    `last`, `min` and `max`, each with `_step` and `_ts_ns`; with smoothing, `smoothed_first`,
    `_last`, `_min` and `_max`. The first and last value may be NaN or infinite; a smallest,
    largest or smoothed value, a step or a time that does not exist is NaN.
    """

    rank: int
    tag: str
    source: str  # what logged it: automatic, strobe.log, tensorboard
    attempt: int | None  # None: over all attempts
    is_exact: bool
    points: int  # on this axis, in the whole run
    points_in_range: int
    first_x: int | None
    last_x: int | None
    facts: dict[str, int]  # what was logged, and how much of it is not on an axis: see lines.Logged
    attempts: list[dict[str, int | None]]
    columns: dict[str, Array]


class _Smoothed(NamedTuple):
    """The smoothed curve over a line: its value at each finite point, and the point's position."""

    at: Array
    value: Array
    levels: list[Sums]


class Charts:
    """The scalars of a run, ready to be drawn at any zoom."""

    def __init__(self, ranks: Mapping[int, Pyramid], started_unix_ns: int) -> None:
        self.ranks = ranks
        self.started_unix_ns = started_unix_ns
        self._smoothed: dict[tuple[Any, ...], _Smoothed] = {}

    @property
    def tags(self) -> list[str]:
        return sorted({tag for pyramid in self.ranks.values() for tag in pyramid.tags})

    def chart(
        self,
        tags: Sequence[str] | None = None,
        *,
        x: str = "step",
        begin: int | None = None,
        end: int | None = None,
        pixels: int = 1000,
        smoothing: Smoothing | None = None,
        by_attempt: bool = False,
        rank: int | None = None,
    ) -> list[Curve]:
        """A curve for each rank, tag and source; with `by_attempt`, one for each attempt of them.

        `begin` and `end` are included; left out, the stretch is that of all these curves together.
        """
        smoothing = (smoothing or Smoothing()).checked()
        self._refuse(tags, x, pixels, rank)
        shift = self.started_unix_ns if x == "time" else 0
        axis = "step" if x == "step" else "time"
        chosen = self._chosen(self.tags if tags is None else tags, rank, by_attempt)
        lines = [self.ranks[r].line(tag, axis, n, source) for r, tag, source, n in chosen]
        ends = [(int(on[0]), int(on[-1])) for on in (_x(line.points, axis) for line in lines)
                if len(on)]  # fmt: skip
        lowest = min((a for a, _ in ends), default=0) if begin is None else begin - shift
        highest = max((b for _, b in ends), default=0) if end is None else end - shift
        if lowest > highest:
            raise UsageError(
                "the range of the chart ends before it begins", hint="begin is at most end"
            )
        drawing = _Drawing(axis, lowest, highest, pixels, shift)
        curves = []
        for series, line in zip(chosen, lines, strict=True):
            curve = self._smooth((*series, axis, smoothing), line, smoothing) if smoothing else None
            curves.append(drawing.curve(self.ranks[series[0]], series, line, curve))
        return curves

    def _refuse(self, tags: Sequence[str] | None, x: str, pixels: int, rank: int | None) -> None:
        if x not in AXES:
            raise UsageError(f"{x!r} is not an axis of a chart", hint=f"axes: {', '.join(AXES)}")
        if not 0 < pixels <= MOST_PIXELS:
            raise UsageError(
                f"a chart cannot be {pixels} pixels wide", hint=f"give 1 to {MOST_PIXELS} pixels"
            )
        if rank is not None and rank not in self.ranks:
            ranks = ", ".join(map(str, self.ranks)) or "none"
            raise UsageError(f"rank {rank} logged no scalars", hint=f"ranks that did: {ranks}")
        unknown = sorted(set(tags or ()) - set(self.tags))
        if unknown:
            raise UsageError(
                f"no scalar is named {unknown[0]!r}",
                hint=f"scalars: {', '.join(self.tags[:20]) or 'none'}",
            )

    def _chosen(self, tags: Sequence[str], rank: int | None, by_attempt: bool) -> list[_Series]:
        return [
            (number, tag, source, attempt)
            for tag in dict.fromkeys(tags)
            for number, pyramid in self.ranks.items()
            if rank in (None, number)
            for source in pyramid.sources(tag)
            for attempt in (pyramid.attempts(tag, source) if by_attempt else [None])
        ]

    def _smooth(self, key: tuple[Any, ...], line: Line, smoothing: Smoothing) -> _Smoothed:
        """On all points of the line, whatever part of it is drawn."""
        found = self._smoothed.pop(key, None)
        if found is None:
            found = _smooth(line.points, smoothing)
            self._forget(len(found.at))
        self._smoothed[key] = found  # at the end: the first one is forgotten first
        return found

    def _forget(self, new: int) -> None:
        points = new + sum(len(one.at) for one in self._smoothed.values())
        while self._smoothed and (
            len(self._smoothed) >= _MOST_SMOOTHED or points > _MOST_SMOOTHED_POINTS
        ):
            points -= len(self._smoothed.pop(next(iter(self._smoothed))).at)


class _Drawing(NamedTuple):
    """A stretch of an axis, both ends included, in pixels."""

    axis: str
    begin: int
    end: int
    pixels: int
    shift: int

    def curve(
        self,
        pyramid: Pyramid,
        series: _Series,
        line: Line,
        curve: _Smoothed | None,
    ) -> Curve:
        _, tag, source, attempt = series
        x = _x(line.points, self.axis)
        first, last = (
            int(np.searchsorted(x, self.begin)), int(np.searchsorted(x, self.end, side="right")),
        )  # fmt: skip
        is_exact = last - first <= self.pixels
        if is_exact:
            columns = _points(line, curve, max(0, first - 1), min(last + 1, len(x)))
        else:
            columns = self._pixels(x, line, curve)
        return Curve(
            *series,
            is_exact,
            points=len(x),
            points_in_range=last - first,
            first_x=int(x[0]) + self.shift if len(x) else None,
            last_x=int(x[-1]) + self.shift if len(x) else None,
            facts=pyramid.facts(tag, attempt, source),
            attempts=_attempts(pyramid, tag, source, attempt),
            columns=columns,
        )

    def _pixels(self, x: Array, line: Line, curve: _Smoothed | None) -> dict[str, Array]:
        edges = np.searchsorted(x, self._edges())
        pixel = np.flatnonzero(np.diff(edges))
        begin, end = edges[pixel], edges[pixel + 1]
        points, sums = line.points, levels.over_ranges(line.points.value, line.levels, begin, end)
        columns = {
            "pixel": pixel,
            "count": end - begin,
            "nan_count": _within(line.nan_at, begin, end),
            "positive_infinity_count": _within(line.positive_infinity_at, begin, end),
            "negative_infinity_count": _within(line.negative_infinity_at, begin, end),
            "sum": sums.sum,
        }
        has_finite = sums.low <= sums.high
        places = {"first": begin, "last": end - 1, "min": sums.low_at, "max": sums.high_at}
        for name, at in places.items():
            is_there = has_finite if name in ("min", "max") else np.ones(len(at), np.bool_)
            place = np.where(is_there, at, 0)
            columns[name] = np.where(is_there, points.value[place], np.nan)
            columns[f"{name}_step"] = _known(points.step[place], is_there)
            columns[f"{name}_ts_ns"] = _known(points.ts_ns[place], is_there)
        if curve is not None:
            columns |= _smoothed_pixels(curve, begin, end)
        return columns

    def _edges(self) -> Array:
        """Where each pixel begins, and where the last one ends: whole numbers, exactly."""
        whole, rest = divmod(self.end - self.begin + 1, self.pixels)
        number = np.arange(self.pixels + 1, dtype=np.int64)
        return self.begin + number * whole + -(-(number * rest) // self.pixels)


def chart(run: Run, tags: Sequence[str] | None = None, **options: Any) -> list[Curve]:
    """Charts of a run, once; see `Charts.chart`. To zoom, open them and ask again."""
    return open_charts(run).chart(tags, **options)


def open_charts(run: Run, known: Charts | None = None) -> Charts:
    """`known` are those of an earlier state of the run, which may have grown since."""
    ranks = pyramids(run, None if known is None else known.ranks)
    return Charts(ranks, run.manifest.started_unix_ns)


def _smooth(points: Points, smoothing: Smoothing) -> _Smoothed:
    is_used = np.isfinite(points.value)
    if smoothing.half_life_ns:
        is_used &= points.ts_ns != UNKNOWN
    at = np.flatnonzero(is_used)
    value = smoothed(points.value[at], points.ts_ns[at], smoothing)
    return _Smoothed(at, value, levels.build(value))


def _points(line: Line, curve: _Smoothed | None, first: int, last: int) -> dict[str, Array]:
    points = line.points.at(slice(first, last))
    columns = {"step": points.step, "ts_ns": points.ts_ns, "value": points.value}
    if curve is not None:
        column = np.full(last - first, np.nan)
        inside = slice(*np.searchsorted(curve.at, [first, last]).tolist())
        column[curve.at[inside] - first] = curve.value[inside]
        columns["smoothed"] = column
    return columns


def _smoothed_pixels(curve: _Smoothed, begin: Array, end: Array) -> dict[str, Array]:
    first, last = np.searchsorted(curve.at, begin), np.searchsorted(curve.at, end)
    has_values = np.flatnonzero(first < last)
    columns = {
        f"smoothed_{n}": np.full(len(begin), np.nan) for n in ("first", "last", "min", "max")
    }
    if len(has_values):
        first, last = first[has_values], last[has_values]
        sums = levels.over_ranges(curve.value, curve.levels, first, last)
        columns["smoothed_first"][has_values] = curve.value[first]
        columns["smoothed_last"][has_values] = curve.value[last - 1]
        columns["smoothed_min"][has_values] = sums.low
        columns["smoothed_max"][has_values] = sums.high
    return columns


def _attempts(
    pyramid: Pyramid, tag: str, source: str, attempt: int | None
) -> list[dict[str, int | None]]:
    """Where each attempt begins, for marks on the axis."""
    found: list[dict[str, int | None]] = []
    for number in pyramid.attempts(tag, source) if attempt is None else [attempt]:
        by_step = pyramid.line(tag, "step", number, source).points
        by_time = pyramid.line(tag, "time", number, source).points
        found.append(
            {
                "attempt": number,
                "points": pyramid.facts(tag, number, source)["logged"],
                "first_step": int(by_step.step[0]) if by_step.length else None,
                "last_step": int(by_step.step[-1]) if by_step.length else None,
                "first_ts_ns": int(by_time.ts_ns[0]) if by_time.length else None,
            }
        )
    return found


def _within(at: Array, begin: Array, end: Array) -> Array:
    """How many of these positions each range has."""
    count: Array = np.searchsorted(at, end) - np.searchsorted(at, begin)
    return count


def _x(points: Points, axis: str) -> Array:
    return points.step if axis == "step" else points.ts_ns


def _known(values: Array, is_there: Array) -> Array:
    """Steps and times as floating-point numbers are exact up to 2**53: 104 days."""
    is_known = is_there & (values != UNKNOWN)
    return np.where(is_known, values, np.nan).astype(np.float64)
