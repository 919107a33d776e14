"""Write a trace as a drawing, and a table as text."""

from pathlib import Path

import duckdb
import numpy as np

from strobe.frameworks.families import family_of
from strobe.model.manifest import Manifest, Rank
from strobe.model.schema import EVENTS, RANK_SHIFT, TRACKS
from strobe.store import columns
from strobe.store.run import Run
from strobe.store.strings import Strings


def make_run(folder: Path, drawing: str, extra: dict[str, dict[str, object]] | None = None) -> Run:
    """One line for each event: `rank/track  kind:name  start..end  [key=value ...]` (ns).

    Keys: step, parent, launcher (line numbers from 0), scope. Event ids are the line numbers.
    A ~ in a name or a track stands for a space. A track `0/s7@cuda:0` is stream 7 of a device.
    `extra` gives whole columns of further stored tables of rank 0: {"op_args": {"event_id": [..]}}.
    """
    from strobe.model.schema import STORED_TABLES

    lines = [line.split() for line in drawing.strip().splitlines()]
    tracks: dict[str, int] = {}
    rows: list[dict[str, object]] = []
    for id, (track, label, span, *rest) in enumerate(lines):
        kind, name = label.split(":", 1)
        start, end = map(int, span.split(".."))
        options = dict(pair.split("=", 1) for pair in rest)
        rows.append(
            {
                "id": id,
                "track_id": tracks.setdefault(track, len(tracks)),
                "ts_ns": start,
                "dur_ns": end - start,
                "kind": kind,
                "name": name.replace("~", " "),
                "step": options.get("step"),
                "parent_id": options.get("parent"),
                "launcher_id": options.get("launcher"),
                "scope": options.get("scope"),
            }
        )
    ranks = sorted({int(track.split("/")[0]) for track in tracks}) or [0]
    for rank in ranks:
        (folder / f"rank_{rank}" / "tables").mkdir(parents=True, exist_ok=True)
    for rank in ranks:
        of_rank = {t: i for t, i in tracks.items() if int(t.split("/")[0]) == rank}
        mine = [row for row in rows if row["track_id"] in of_rank.values()]
        tables = folder / f"rank_{rank}" / "tables"
        columns.write(EVENTS, as_columns(EVENTS, mine), tables / "events.parquet")
        track_rows = [{"id": i, "rank": rank, **_track(t)} for t, i in of_rank.items()]
        columns.write(TRACKS, as_columns(TRACKS, track_rows), tables / "tracks.parquet")
    by_name = {table.name: table for table in STORED_TABLES}
    for name, given in (extra or {}).items():
        table = by_name[name]
        count = len(next(iter(given.values())))  # type: ignore[call-overload]
        if name == "op_args" and "family" not in given:
            given = {**given, "family": _families(rows, given)}
        extra_rows = [{key: given[key][i] for key in given} for i in range(count)]  # type: ignore[index]
        columns.write(
            table, as_columns(table, extra_rows), folder / "rank_0" / "tables" / f"{name}.parquet"
        )
    manifest = Manifest(started_unix_ns=0, recorded_by="a drawing", state="finished")
    manifest.ranks = [Rank(rank=rank, pid=0, host="here", state="finished") for rank in ranks]
    return Run(folder, manifest, [folder / f"rank_{rank}" for rank in ranks])


def _families(rows, given):
    """As ingest decides them; a drawing may have rows of operators that it leaves out."""
    names = {row["id"]: str(row["name"]) for row in rows}
    nodes = given.get("node") or [None] * len(given["event_id"])
    return [family_of(names.get(id, ""), node)
            for id, node in zip(given["event_id"], nodes, strict=True)]  # fmt: skip


def _track(text: str) -> dict[str, object]:
    name, _, device = text.replace("~", " ").split("/")[1].partition("@")
    if not device:
        return {"device": "steps" if name == "steps" else "cpu", "name": name}
    return {"device": device, "name": name, "thread": int(name.lstrip("s"))}


def as_columns(table, rows):
    """Rows of plain values as the columns that store.columns.write takes."""
    result = {}
    for column in table.columns:
        values = [row.get(column.name) for row in rows]
        if column.type == "str":
            distinct = list(dict.fromkeys(v for v in values if v is not None))
            codes = [distinct.index(v) if v is not None else -1 for v in values]
            result[column.name] = Strings(np.array(codes, dtype=np.int32), distinct)
            continue
        dtype = {"i64": np.int64, "f64": np.float64, "bool": np.bool_}[column.type]
        filled = [0 if v is None else (v if column.type == "f64" else int(v)) for v in values]
        result[column.name] = np.ma.masked_array(
            np.array(filled, dtype=dtype), mask=[v is None for v in values]
        )
    return result


def text(relation: duckdb.DuckDBPyRelation) -> str:
    lines = [" ".join(relation.columns)]
    lines += [" ".join("-" if v is None else str(v) for v in row) for row in relation.fetchall()]
    return "\n".join(lines)


__all__ = ["RANK_SHIFT", "as_columns", "make_run", "text"]
