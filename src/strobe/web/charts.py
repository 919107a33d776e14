"""Charts of scalars over HTTP: which there are, and what to draw of them in so many pixels.

`/api/runs/<id>/charts` lists the scalars. `/api/runs/<id>/charts/curves` takes
- tags: a JSON list of names; left out, all of them;
- x: step, time or relative; begin, end: the stretch of it, both included; pixels: its width;
- weight or half_life_ns: smoothing; by_attempt=1: a curve for each attempt; rank: of this rank;
- format: columns as bytes by default, as `timeline/packet.py` packs them; csv for a file to save.
Steps and times are floating-point numbers; one that is not known is NaN.
"""

import csv
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from strobe.analyse.metrics.chart import Charts, Curve, open_charts
from strobe.analyse.metrics.pyramid import Pyramid
from strobe.analyse.metrics.smoothing import Smoothing
from strobe.errors import UsageError
from strobe.store.array_file import Array
from strobe.store.nullable import UNKNOWN
from strobe.timeline.packet import packed
from strobe.web.question import BYTES, CSV, Answer, Asked
from strobe.web.tables import as_json

# More in one answer would be a mistake of the page.
MOST_CURVES = 512
DEFAULT_PIXELS = 1000
# Runs whose charts a worker keeps open: those that are compared.
_MOST_HELD = 8

_held: dict[Path, tuple[str, Charts]] = {}


def scalars(asked: Asked) -> Answer:
    charts = _charts(asked)
    listed: list[dict[str, Any]] = [
        {
            "tag": tag,
            "rank": rank,
            "source": source,
            "attempts": pyramid.attempts(tag, source),
            **pyramid.facts(tag, None, source),
            **_ends(pyramid, tag, source),
        }
        for rank, pyramid in charts.ranks.items()
        for tag in pyramid.tags
        for source in pyramid.sources(tag)
    ]
    return as_json({"ok": True, "started_unix_ns": charts.started_unix_ns, "scalars": listed})


def curves(asked: Asked) -> Answer:
    params = asked.params
    form = params.get("format", "")
    if form not in ("", "csv"):
        raise UsageError(f"no format {form[:20]!r}", hint="leave it out, or format=csv")
    rank = _whole(asked, "rank")
    charts, tags = _charts(asked), _tags(params.get("tags", ""))
    wanted = charts.tags if tags is None else tags
    if len(wanted) * len(charts.ranks) > MOST_CURVES and (
        rank is None or len(wanted) > MOST_CURVES
    ):
        raise UsageError(
            f"{len(wanted)} scalars of {len(charts.ranks)} ranks are too many at once",
            hint=f"name fewer with tags=[...] or rank=0: at most {MOST_CURVES} curves",
        )
    drawn = charts.chart(
        tags,
        x=params.get("x", "step"),
        begin=_whole(asked, "begin"),
        end=_whole(asked, "end"),
        pixels=_whole(asked, "pixels") or DEFAULT_PIXELS,
        smoothing=Smoothing(_number(asked, "weight"), _number(asked, "half_life_ns")),
        by_attempt=params.get("by_attempt") == "1",
        rank=rank,
    )
    if form == "csv":
        return Answer(_csv(drawn), CSV, file_name=f"{asked.path.name}-charts.csv")
    about = {
        "started_unix_ns": charts.started_unix_ns,
        "curves": [_about(curve) for curve in drawn],
    }
    columns = {
        f"{number}/{name}": column
        for number, curve in enumerate(drawn)
        for name, column in _plain(curve).items()
    }
    return Answer(packed(about, columns), BYTES)


def _charts(asked: Asked) -> Charts:
    content, charts = _held.pop(asked.path, ("", None))
    if charts is None or content != asked.content:
        asked.report("preparing the charts", 0, 0)
        charts = open_charts(asked.run.run, charts)
        while len(_held) >= _MOST_HELD:
            del _held[next(iter(_held))]
    _held[asked.path] = (asked.content, charts)  # at the end: the first one is closed first
    return charts


def _ends(pyramid: Pyramid, tag: str, source: str) -> dict[str, int | None]:
    by_step = pyramid.line(tag, "step", None, source).points.step
    by_time = pyramid.line(tag, "time", None, source).points.ts_ns
    return {
        "first_step": int(by_step[0]) if len(by_step) else None,
        "last_step": int(by_step[-1]) if len(by_step) else None,
        "first_ts_ns": int(by_time[0]) if len(by_time) else None,
        "last_ts_ns": int(by_time[-1]) if len(by_time) else None,
    }


def _about(curve: Curve) -> dict[str, Any]:
    about = curve._asdict()
    del about["columns"]
    return about


def _plain(curve: Curve) -> dict[str, Array]:
    """Columns of a type that browsers have."""
    return {name: _float(column) for name, column in curve.columns.items()}


def _float(column: Array) -> Array:
    if column.dtype == np.float64:
        return column
    return np.where(column == UNKNOWN, np.nan, column).astype(np.float64)


def _csv(drawn: Iterable[Curve]) -> bytes:
    """A row for each point or pixel; columns that a curve does not have are empty."""
    drawn = list(drawn)
    names = list(dict.fromkeys(name for curve in drawn for name in curve.columns))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["rank", "tag", "source", "attempt", *names])
    for curve in drawn:
        rows = len(next(iter(curve.columns.values())))
        of_names = [curve.columns[n].tolist() if n in curve.columns else [""] * rows for n in names]
        attempt = "" if curve.attempt is None else curve.attempt
        key = [curve.rank, curve.tag, curve.source, attempt]
        for row in zip(*of_names, strict=True):
            writer.writerow([*key, *("" if value == UNKNOWN else value for value in row)])
    return out.getvalue().encode("utf-8", "replace")


def _tags(text: str) -> list[str] | None:
    if not text:
        return None
    try:
        tags = json.loads(text)
    except (ValueError, RecursionError):
        tags = None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError("tags are not a list of names", hint='tags=["loss"]')
    return tags


def _whole(asked: Asked, name: str) -> int | None:
    text = asked.params.get(name, "")
    if not text:
        return None
    if not re.fullmatch(r"-?\d{1,19}", text, re.ASCII) or abs(int(text)) >= 2**62:
        raise UsageError(f"{name} is not a whole number: {text[:40]!r}", hint=f"{name}=0")
    return int(text)


def _number(asked: Asked, name: str) -> float:
    text = asked.params.get(name, "") or "0"
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{name} is not a number: {text[:40]!r}", hint=f"{name}=0.9") from error
