"""A metric log that writes to a folder, and what a reader makes of it."""

from pathlib import Path
from typing import Any

import numpy as np

from strobe.collect.metrics.log import MetricLog
from strobe.ingest.recording import metrics
from strobe.ingest.recording.journal_reader import Journal
from strobe.ingest.trace.problems import Problems
from tests.ingest.metrics import as_rows

NOTHING = np.zeros(0, dtype=np.int64)


class Logged:
    """What is in a folder now, by table."""

    def __init__(self, raw: Path) -> None:
        marks = Journal(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, problems=Problems())
        found = metrics.read(raw, marks, None, 0)
        self.problems = [what for _, what in marks.problems.counts]
        self.tables: dict[str, list[dict[str, Any]]] = {}
        for part in found.parts(0):
            for name, columns in part.items():
                self.tables.setdefault(name, []).extend(as_rows(columns))

    def __getitem__(self, table: str) -> list[dict[str, Any]]:
        return self.tables.get(table, [])

    def points(self, tag: str) -> list[tuple[int, float]]:
        return [(row["step"], row["value"]) for row in self["scalars"] if row["tag"] == tag]


def log_in(raw: Path) -> tuple[MetricLog, list[str]]:
    """A log that writes to this folder, and what it warned of."""
    raw.mkdir(parents=True, exist_ok=True)
    warnings: list[str] = []
    log = MetricLog(lambda source, what: warnings.append(what))
    log.open(raw)
    return log, warnings
