"""The timeline over HTTP: the pages ask for what they can draw, and no more.

`timeline` tells what rows there are, or that the index is not there yet; `timeline/index` makes it.
Rows are given as `0-17,20`, moments in nanoseconds since the run began.

A live run grows while one looks at it: `timeline` then tells of the last index that was made, and
a page names the one it looks at (`index=`), for rows and names have other numbers in the next.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from strobe.errors import MissingData, UsageError
from strobe.ingest.building.builder import describe
from strobe.timeline import area as areas
from strobe.timeline import curves, details, search, steps
from strobe.timeline.colours import BY_NAME, FIXED
from strobe.timeline.index import (
    Index,
    make_index,
    open_current,
    open_index,
    open_last,
    open_named,
)
from strobe.timeline.packet import packed
from strobe.timeline.tiles import tile
from strobe.web.question import BYTES, CSV, Answer, Asked
from strobe.web.tables import as_json, described

# Indexes a worker keeps mapped; they are shared with other workers by the system.
_MOST_HELD = 4
# Searches whose hits are kept, for who goes from one to the next.
_MOST_SEARCHES = 8
NAMES_AT_ONCE = 1024
# A viewer shows a few hundred rows; more in one answer would be a mistake of the page.
_MOST_ROWS = 20_000
_LONGEST_AT_MOST = 5_000
_PIECE_BYTES = 1 << 18

# By the name that a page gives an index, or by the content of a run that has not grown since.
_held: dict[tuple[Path, str], Index] = {}


def _index(asked: Asked) -> Index:
    """The one that the page looks at; of one that names none, that of the run as it is."""
    name = asked.params.get("index", "")
    found = _kept(asked, name, lambda: open_named(asked.path, name)) if name else _current(asked)
    if found is None:
        raise MissingData.of("errors/pages.index-missing")
    return found


def _current(asked: Asked) -> Index | None:
    return _kept(asked, asked.content, lambda: open_current(asked.path))


def _kept(asked: Asked, name: str, opened: Callable[[], Index | None]) -> Index | None:
    key = (asked.path, name)
    if key not in _held:
        index = opened()
        if index is None:
            return None
        while len(_held) >= _MOST_HELD:
            del _held[next(iter(_held))]
        _held[key] = index
    return _held[key]


def meta(asked: Asked) -> Answer:
    is_live = describe(asked.path).state == "recording"
    index = open_last(asked.path) if is_live else _current(asked)
    if index is None:
        return as_json({"ok": True, "ready": False})
    # Held from now on: when the run grows, its file makes room for the next.
    _kept(asked, index.content, lambda: index)
    about = index.about
    return as_json(
        {
            "ok": True,
            "ready": True,
            "index": index.content,
            "is_live": is_live,
            "begin_ns": index.origin_ns,
            "end_ns": index.origin_ns + about["span_ns"],
            "stretches": _stretches(index),
            "coarsest_shift": about["shifts"][-1] if about["shifts"] else 0,
            "events": len(index.arrays["id"]),
            "tracks": _tracks(index),
            "curves": about["curves"],
            "names": index.names,
            "colours": {"by_name": BY_NAME, "fixed": FIXED},
        }
    )


def _stretches(index: Index) -> list[dict[str, Any]]:
    return [
        {**one, **{end: one[end] + index.origin_ns for end in ("begin_ns", "end_ns")}}
        for one in index.about["stretches"]
    ]


def _tracks(index: Index) -> list[dict[str, Any]]:
    told, first = [], 0
    for track in index.about["tracks"]:
        last = first + track["rows"]
        events = int(index.arrays["row_at"][last] - index.arrays["row_at"][first])
        told.append({**track, "first_row": first, "events": events})
        first = last
    return told


def make(asked: Asked) -> Answer:
    """Slow the first time: it is asked for with patience, and tells how far it has come."""
    if _current(asked) is None:
        run = asked.run.run  # its tables are those of now, and so may be the index
        if open_index(asked.path) is None:
            make_index(run, lambda what, share: asked.report(what, int(share * 100), 100))
    return as_json({"ok": True})


def tiles(asked: Asked) -> Answer:
    shift, first, last = (_number(asked, name) for name in ("shift", "first", "last"))
    drawn = tile(_index(asked), _rows(asked), shift, first, last)
    about = {"shift": drawn.shift, "first": drawn.first_bucket, "buckets": drawn.buckets}
    columns = ("count_of_row", "paint", "x", "width", "busy", "begun")
    return Answer(packed(about, {name: getattr(drawn, name) for name in columns}), BYTES)


def curve_columns(asked: Asked) -> Answer:
    index = _index(asked)
    t0, t1, buckets = (_number(asked, name) for name in ("t0", "t1", "buckets"))
    about: dict[str, Any] = {"t0": t0, "t1": t1, "buckets": buckets, "before": {}}
    columns = {}
    for number in _numbers(asked.params.get("curves", "")):
        drawn = curves.curve(index, number, t0, t1, buckets)
        about["before"][number] = drawn.before
        for name in ("bucket", "low", "high", "last"):
            columns[f"{number}/{name}"] = getattr(drawn, name)
    return Answer(packed(about, columns), BYTES)


def names(asked: Asked) -> Answer:
    index, first = _index(asked), _number(asked, "first")
    codes = range(max(0, first), min(index.names, first + NAMES_AT_ONCE))
    return as_json({"ok": True, "names": [[index.name(at), index.kind(at)] for at in codes]})


def event_at(asked: Asked) -> Answer:
    index = _index(asked)
    found = details.at(index, *(_number(asked, name) for name in ("row", "t0", "t1")))
    event = None if found is None else details.brief(index, found)
    return as_json({"ok": True, "event": event})


def event(asked: Asked) -> Answer:
    index = _index(asked)
    return as_json({"ok": True, **details.details(index, details.position_of(index, _id(asked)))})


def arguments(asked: Asked) -> Answer:
    run, index, number = asked.run.run, _index(asked), _id(asked)
    seen = details.brief(index, details.position_of(index, number))
    # The tables of a live run may be newer than what the page looks at.
    now = run.sql("SELECT name, kind FROM events WHERE id = ?", [number]).fetchall()
    if now != [(seen["name"], seen["kind"])]:
        raise MissingData.of("errors/pages.run-has-grown")
    return as_json({"ok": True, **details.arguments(run, number)})


def find(asked: Asked) -> Answer:
    """What is found, or with `way` the next or previous hit from a moment or an event."""
    index = _index(asked)
    hits = _hits(index, asked.params.get("q", "")[:200])
    way = asked.params.get("way", "")
    if not way:
        return as_json({"ok": True, **search.told(index, hits)})
    if way not in ("next", "previous"):
        raise UsageError.of("errors/pages.bad-way", value=repr(way[:20]))
    from_ns, position = _number(asked, "from", 0), _number(asked, "position", -1)
    if not -1 <= position < len(index.arrays["id"]):
        raise UsageError.of("errors/pages.no-position")
    place = search.following(index, hits, from_ns, position, back=way == "previous")
    if place is None:
        return as_json({"ok": True, "event": None, "number": 0, "total": 0})
    event = details.brief(index, int(hits.position[place]))
    number = search.number_of(hits, place)
    return as_json({"ok": True, "event": event, "number": number, "total": len(hits.position)})


_searches: dict[tuple[str, str], search.Hits] = {}


def _hits(index: Index, text: str) -> search.Hits:
    key = (index.content, text)
    if key not in _searches:
        while len(_searches) >= _MOST_SEARCHES:
            del _searches[next(iter(_searches))]
        _searches[key] = search.find(index, text)
    return _searches[key]


def area(asked: Asked) -> Answer:
    t0, t1 = _stretch(asked)
    found = areas.area(_index(asked), _rows(asked), t0, t1)
    if asked.params.get("format") == "csv":
        return _as_csv(areas.RESULT, found["rows"], "area.csv")
    columns = described(areas.RESULT.columns)
    total = len(found["rows"])
    return as_json({"ok": True, "table": "area", "columns": columns, "total": total, **found})


def longest(asked: Asked) -> Answer:
    t0, t1 = _stretch(asked)
    most = min(max(1, _number(asked, "limit", 200)), _LONGEST_AT_MOST)
    rows = areas.longest(_index(asked), _rows(asked), t0, t1, most)
    if asked.params.get("format") == "csv":
        return _as_csv(areas.LONGEST, rows, "events.csv")
    columns = described(areas.LONGEST.columns)
    return as_json(
        {"ok": True, "table": areas.LONGEST.name, "columns": columns, "rows": rows,
         "total": len(rows)}
    )  # fmt: skip


def _as_csv(table: Any, rows: list[list[Any]], file_name: str) -> Answer:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.column_names)
    writer.writerows(rows)
    return Answer(out.getvalue().encode(), CSV, file_name=file_name)


def stretch_of_steps(asked: Asked) -> Answer:
    """From when to when some steps last: `steps=10:20`."""
    given = asked.params.get("steps", "")
    match = re.fullmatch(r"(\d{0,12}):(\d{0,12})", given, re.ASCII)
    if match is None:
        raise UsageError.of("errors/pages.bad-steps", value=repr(given[:40]))
    first, last = (int(text) if text else None for text in match.groups())
    rank = asked.params.get("rank", "")
    found = steps.stretch(_index(asked), first, last, int(rank) if rank.isdecimal() else None)
    if found is None:
        raise UsageError.of("errors/pages.no-such-steps")
    return as_json({"ok": True, "t0": found[0], "t1": found[1]})


def export(asked: Asked) -> Answer:
    """The whole timeline as Chrome trace JSON, packed; Perfetto opens it."""
    from strobe.show.formats import chrome_timeline

    folder = tempfile.TemporaryDirectory(prefix="strobe-export-")
    path = Path(folder.name) / "timeline.json.gz"
    asked.report("writing the timeline", 0, 0)
    chrome_timeline.write(asked.run.run, path)
    return Answer(
        _pieces(path, folder), "application/gzip", file_name=f"{asked.path.name}.timeline.json.gz"
    )


def _pieces(path: Path, folder: "tempfile.TemporaryDirectory[str]") -> Iterator[bytes]:
    with folder, path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _number(asked: Asked, name: str, default: int | None = None) -> int:
    text = asked.params.get(name, "")
    if not text and default is not None:
        return default
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise UsageError.of("errors/pages.not-int", name=name, value=repr(text[:40]), example=0)
    return int(text)


def _stretch(asked: Asked) -> tuple[int, int]:
    t0, t1 = _number(asked, "t0"), _number(asked, "t1")
    if t1 <= t0:
        raise UsageError.of("errors/pages.time-reversed")
    return t0, t1


def _id(asked: Asked) -> int:
    if len(asked.words) != 1 or not re.fullmatch(r"\d{1,19}", asked.words[0], re.ASCII):
        raise UsageError.of("errors/pages.which-event")
    return int(asked.words[0])


def _rows(asked: Asked) -> list[int]:
    """`rows=0-17,20`; left out, all rows."""
    index = _index(asked)
    if "rows" not in asked.params:
        return list(range(index.rows))
    rows = _numbers(asked.params["rows"])
    if rows and max(rows) >= index.rows:
        raise UsageError.of("errors/pages.no-row", last=index.rows - 1)
    return rows


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", part, re.ASCII)
        if match is None:
            raise UsageError.of("errors/pages.bad-rows", value=repr(part[:40]))
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first + len(found) >= _MOST_ROWS:
            raise UsageError.of("errors/pages.too-many-timeline-rows", most=_MOST_ROWS)
        found += range(first, last + 1)
    return found
