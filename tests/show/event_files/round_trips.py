"""A run's metrics, exported and read again: rows that differ."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from strobe.ingest.building.opening import open_run_dir
from strobe.ingest.importing.importer import import_traces
from strobe.store.blobs import find_blob
from strobe.store.run import Run

WITH_TAGS = ("scalars", "histograms", "images", "tensors", "texts")
Rows = dict[str, list[dict[str, Any]]]


def exported_and_read(run: Run, module: Any, folder: Path) -> tuple[Run, list[str]]:
    """The run again, made of its export, and what the export could not hold."""
    notes = module.write(run, folder / "exported") or []
    import_traces([folder / "exported"], folder / "again")
    return open_run_dir(folder / "again"), notes


def rows(run: Run, table: str) -> Rows:
    """By tag or name, in the order in which they are stored; files as what is in them."""
    relation = run.sql(f"SELECT * FROM {table}")
    found: Rows = {}
    for values in relation.fetchall():
        row = dict(zip(relation.columns, values, strict=True))
        row.pop("source")
        if "file" in row:
            row["file"] = content(run, row)
        for name in ("edges", "counts"):
            if name in row:
                row[name] = json.loads(row[name])
        found.setdefault(f"{row['rank']} {row.get('tag', row.get('name'))}", []).append(row)
    return found


def content(run: Run, row: dict[str, Any]) -> Any:
    path = find_blob(run, row["rank"], row["file"])
    assert path is not None
    if path.suffix != ".npy":
        return path.read_bytes()
    array = np.load(path)
    return [str(array.dtype), list(array.shape), array.tobytes()]


def differences(a: Run, b: Run, table: str, ignored: tuple[str, ...] = ()) -> list[str]:
    """Times may differ by what a number of seconds since 1970 cannot hold."""
    before, after = rows(a, table), rows(b, table)
    found = [f"{tag}: missing" for tag in sorted(before.keys() - after.keys())]
    found += [f"{tag}: new" for tag in sorted(after.keys() - before.keys())]
    for tag in sorted(before.keys() & after.keys()):
        if len(before[tag]) != len(after[tag]):
            found.append(f"{tag}: {len(before[tag])} rows, then {len(after[tag])}")
            continue
        for one, other in zip(before[tag], after[tag], strict=True):
            found += [
                f"{tag} {name}: {one[name]!r}, then {other[name]!r}"
                for name in one if name not in ignored and not _same(name, one[name], other[name])
            ]  # fmt: skip
    return found


def _same(name: str, a: Any, b: Any) -> bool:
    if name == "ts_ns" and a is not None and b is not None:
        return abs(a - b) < 1000
    if isinstance(a, float) and isinstance(b, float):
        is_nan = math.isnan(a) and math.isnan(b)
        return is_nan or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)
