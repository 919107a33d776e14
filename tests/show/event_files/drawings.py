"""Runs with training metrics, from a few values per table."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from strobe.model.blobs import write_blob
from strobe.model.manifest import Manifest, Rank
from strobe.model.schema import METRIC_TABLES
from strobe.store import columns
from strobe.store.run import Run
from tests.helpers import as_columns

STARTED_NS = 1_790_000_000 * 10**9
Rows = list[dict[str, Any]]


def metrics_run(folder: Path, rows: dict[str, Rows], host: str = "here") -> Run:
    """Rows of each table; what they leave out is filled in, and `data` becomes their file."""
    tables = {table.name: table for table in METRIC_TABLES}
    ranks = sorted({row.get("rank", 0) or 0 for each in rows.values() for row in each} or {0})
    for rank in ranks:
        home = folder / f"rank_{rank}" / "tables"
        home.mkdir(parents=True)
        for name, each in rows.items():
            mine = [_filled(name, row, home) for row in each if (row.get("rank", 0) or 0) == rank]
            if mine:
                columns.write(
                    tables[name], as_columns(tables[name], mine), home / f"{name}.parquet"
                )
    manifest = Manifest(started_unix_ns=STARTED_NS, recorded_by="a drawing", state="finished")
    manifest.ranks = [Rank(rank=rank, pid=7, host=host, state="finished") for rank in ranks]
    return Run(folder, manifest, [folder / f"rank_{rank}" for rank in ranks])


def curve(tag: str, values: list[float], rank: int = 0, attempt: int = 1, first: int = 0) -> Rows:
    """A value per step and second."""
    return [
        {"rank": rank, "tag": tag, "step": step, "ts_ns": step * 10**9, "value": value,
         "attempt": attempt}
        for step, value in enumerate(values, first)
    ]  # fmt: skip


def tensor(tag: str, array: Any, plugin: str | None = None, **row: Any) -> dict[str, Any]:
    array = np.asarray(array)
    file = io.BytesIO()
    np.save(file, array)
    return {"tag": tag, "data": (file.getvalue(), "npy"), "plugin": plugin,
            "dtype": array.dtype.name, "shape": str(list(array.shape)), **row}  # fmt: skip


def histogram(tag: str, edges: list[float], counts: list[float], **row: Any) -> dict[str, Any]:
    return {"tag": tag, "edges": str(edges), "counts": str(counts), "count": int(sum(counts)),
            "nan_count": 0, "positive_infinity_count": 0, "negative_infinity_count": 0,
            "min": edges[0], "max": edges[-1], **row}  # fmt: skip


def _filled(table: str, row: dict[str, Any], home: Path) -> dict[str, Any]:
    data, suffix = row.pop("data", (None, ""))
    if data is not None:
        row = {**row, "file": f"tables/blobs/{write_blob(home / 'blobs', data, suffix)}",
               "bytes": len(data)}  # fmt: skip
    if table in ("hyperparameters", "lineage"):
        return {"rank": 0, "source": "strobe.log", **row}
    return {"rank": 0, "step": 1, "ts_ns": 10**9, "source": "strobe.log", "attempt": 1,
            "index": 0, **row}  # fmt: skip
