"""What a run has, by a query."""

from pathlib import Path
from typing import Any

import strobe


def rows(run: Path, query: str) -> list[tuple[Any, ...]]:
    with strobe.open_run(run) as opened:
        return opened.run.sql(query).fetchall()
