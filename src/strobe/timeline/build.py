"""A run's tables → the arrays of its timeline, in the order in which they are asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np

from strobe.model.schema import KINDS
from strobe.store.run import Run
from strobe.timeline.colours import COLOUR_BITS, colour_of
from strobe.timeline.curves import CURVES
from strobe.timeline.parts import IS_ASIDE, divided, parents_within
from strobe.timeline.pyramid import add_levels
from strobe.timeline.rows import Array, place
from strobe.timeline.stretches import stretches

_KINDS = list(KINDS)

# Tells what is done, of how much, for people who wait.
Progress = Callable[[str, float], None]

_NAMES = """
    SELECT (row_number() OVER (ORDER BY kind, name) - 1)::INTEGER AS code, kind, name
    FROM (SELECT DISTINCT kind, name FROM events)
"""
# The tracks of a rank: its steps, its devices in the order of their names, its threads.
_TRACK_KEYS = ("id", "rank", "device", "name", "process", "thread")
_TRACKS = """
    SELECT id, rank, device, name, process, thread FROM tracks
    WHERE id IN (SELECT track_id FROM events)
    ORDER BY rank, device <> 'steps', device = 'cpu', device, thread NULLS FIRST, id
"""
_EVENTS = f"""
    SELECT e.id, e.track_id, e.ts_ns, greatest(e.dur_ns, 0) AS dur_ns, n.code AS name,
           coalesce(e.parent_id, -1) AS parent_id, {IS_ASIDE} AS is_aside
    FROM events e JOIN timeline_names n ON n.kind = e.kind AND n.name = e.name
    JOIN tracks t ON t.id = e.track_id
"""
_FLOWS = """
    SELECT from_id, to_id, kind FROM links
    UNION ALL
    SELECT launcher_id, id, 'launch' FROM events WHERE launcher_id IS NOT NULL
"""


def build(
    run: Run, progress: Progress = lambda what, share: None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """What the timeline is about, and its arrays."""
    progress("reading events", 0.0)
    run.make("timeline_names", _NAMES)
    tracks = [dict(zip(_TRACK_KEYS, row, strict=True)) for row in run.sql(_TRACKS).fetchall()]
    events = run.sql(_EVENTS).fetchnumpy()
    progress("sorting events", 0.3)
    arrays, origin_ns, tracks = _sorted_events(events, tracks)
    del events
    _add_names(run, arrays)
    shifts = add_levels(arrays, lambda share: progress("summing up", 0.5 + 0.4 * share))
    progress("joining causes and effects", 0.9)
    ends = arrays["start_ns"] + arrays["dur_ns"]
    about = {
        "origin_ns": origin_ns,
        "span_ns": int(ends.max()) if len(ends) else 0,
        "shifts": shifts,
        "stretches": stretches(arrays["start_ns"], ends, _ranks(arrays, tracks)),
        "tracks": tracks,
        "flow_kinds": _add_flows(run, arrays),
        "curves": _add_curves(run, arrays),
        "kinds": _KINDS,
    }
    return about, arrays


def _sorted_events(
    events: dict[str, Any], tracks: list[dict[str, Any]]
) -> tuple[dict[str, Array], int, list[dict[str, Any]]]:
    """Events in order of (row, start), the first moment, and the tracks with their rows."""
    track_ids = [track["id"] for track in tracks]
    identity = np.asarray(events["id"])
    ts_ns, dur_ns = np.asarray(events["ts_ns"]), np.asarray(events["dur_ns"])
    track = _positions(np.asarray(track_ids, dtype=np.int64), np.asarray(events["track_id"]))
    parent = _positions(identity, np.asarray(events["parent_id"]))
    tracks, track = divided(tracks, track, np.asarray(events["is_aside"]))
    placed = place(track, ts_ns, dur_ns, parents_within(parent, track))
    children_ns = np.zeros(len(ts_ns), dtype=np.int64)
    inner = parent >= 0
    np.add.at(children_ns, parent[inner], dur_ns[inner])
    origin_ns = int(ts_ns.min()) if len(ts_ns) else 0
    order = placed.order
    moved = np.append(np.empty(len(order), dtype=np.int32), np.int32(-1))
    moved[order] = np.arange(len(order), dtype=np.int32)
    rows = int(placed.rows_of_track.sum())
    for number, track_rows in enumerate(tracks):
        track_rows["rows"] = int(placed.rows_of_track[number])
        track_rows["overlapping"] = int(placed.overlapping[number])
    arrays = {
        "row_at": np.searchsorted(placed.row, np.arange(rows + 1)),
        "start_ns": ts_ns[order] - origin_ns,
        "dur_ns": dur_ns[order],
        "name": np.asarray(events["name"], dtype=np.int32)[order],
        "id": identity[order],
        # A child that outlasts its parent must not make the parent's own time negative.
        "self_ns": np.maximum(dur_ns - children_ns, 0)[order],
        "parent": moved[parent[order]],
    }
    arrays["by_id"] = np.argsort(arrays["id"], kind="stable").astype(np.int32)
    return arrays, origin_ns, tracks


def _ranks(arrays: dict[str, Array], tracks: list[dict[str, Any]]) -> Array:
    """The rank of each event."""
    of_row = np.repeat([track["rank"] for track in tracks], [track["rows"] for track in tracks])
    return np.asarray(np.repeat(of_row, np.diff(arrays["row_at"])))


def _positions(known: Array, wanted: Array) -> Array:
    """Where each wanted id stands among the known ones, or -1."""
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    is_sorted = bool((known[1:] > known[:-1]).all())
    order = None if is_sorted else np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    at = at if order is None else order[at]
    return np.where(known[at] == wanted, at, -1)


def _add_flows(run: Run, arrays: dict[str, Array]) -> list[str]:
    """Causes and effects as positions, once in order of the cause and once of the effect."""
    flows = run.sql(_FLOWS).fetchnumpy()
    kinds, kind = np.unique(np.asarray(flows["kind"], dtype=str), return_inverse=True)
    by_id = arrays["by_id"]
    ends = []
    for column in ("from_id", "to_id"):
        found = _positions(arrays["id"][by_id], np.asarray(flows[column], dtype=np.int64))
        ends.append(np.where(found >= 0, by_id[found], -1).astype(np.int32))
    known = (ends[0] >= 0) & (ends[1] >= 0)
    cause, effect, kind = ends[0][known], ends[1][known], kind[known].astype(np.uint8)
    for name, order in (("cause", np.lexsort((effect, cause))), ("effect", np.argsort(effect))):
        arrays[f"by_{name}_cause"] = cause[order]
        arrays[f"by_{name}_effect"] = effect[order]
        arrays[f"by_{name}_kind"] = kind[order]
    return [str(name) for name in kinds]


def _add_curves(run: Run, arrays: dict[str, Array]) -> list[dict[str, Any]]:
    run.make("timeline_curves", CURVES)
    listed = run.sql(
        "SELECT rank, name, count(*), min(value), max(value) FROM timeline_curves"
        " GROUP BY rank, name ORDER BY rank, name"
    ).fetchall()
    values = run.sql(
        "SELECT ts_ns, value FROM timeline_curves ORDER BY rank, name, ts_ns"
    ).fetchnumpy()
    arrays["curve_at"] = np.cumsum([0, *(row[2] for row in listed)])
    arrays["curve_ns"] = np.asarray(values["ts_ns"], dtype=np.int64)
    arrays["curve_value"] = np.asarray(values["value"], dtype=np.float64)
    keys = ("rank", "name", "values", "lowest", "highest")
    return [dict(zip(keys, row, strict=True)) for row in listed]


def _add_names(run: Run, arrays: dict[str, Array]) -> None:
    """Kind and name of each number; its paint is the number and, below it, its colour."""
    names = run.sql("SELECT kind, name FROM timeline_names ORDER BY code").fetchall()
    colours = np.array([colour_of(kind, name) for kind, name in names], dtype=np.int64)
    texts = [name.encode("utf-8", "backslashreplace") for _, name in names]
    arrays["paint"] = (np.arange(len(names)) << COLOUR_BITS | colours).astype(np.uint32)
    arrays["name_kind"] = np.array([_KINDS.index(kind) for kind, _ in names], dtype=np.uint8)
    arrays["name_at"] = np.cumsum([0, *map(len, texts)])
    arrays["name_text"] = np.frombuffer(b"".join(texts), dtype=np.uint8)
