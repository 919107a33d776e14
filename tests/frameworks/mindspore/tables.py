"""The tables of a recorded run, as rows."""

import json
from pathlib import Path
from typing import Any

from tests.frameworks import environment


def sql(folder: Path, query: str) -> list[dict[str, Any]]:
    return environment.rows("mindspore", folder, query)


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    """What `strobe show` answers."""
    shown = json.loads(environment.strobe("mindspore", "show", folder, name, "--json"))
    names = [column["name"] for column in shown["columns"]]
    return [dict(zip(names, row, strict=True)) for row in shown["rows"]]


def full_steps(folder: Path, rank: int = 0) -> set[int]:
    """Those recorded in full."""
    found = table(folder, "steps")
    return {row["step"] for row in found if row["is_recorded"] and row.get("rank", 0) == rank}
