"""Questions we can answer. To add one: write its module, add one line here."""

from typing import Any, Protocol

import duckdb

from strobe.analyse import (
    counter_statistics,
    gaps,
    memory,
    modules,
    operator_types,
    operators,
    step_statistics,
    steps,
    threads,
)
from strobe.model.schema import Table
from strobe.store.run import Run


class Analysis(Protocol):
    """A module that answers one question with one table. Its docstring is the question."""

    NAME: str
    RESULT: Table

    def run(self, run: Run, **options: Any) -> duckdb.DuckDBPyRelation: ...


ANALYSES: tuple[Analysis, ...] = (
    counter_statistics,
    gaps,
    memory,
    modules,
    operator_types,
    operators,
    step_statistics,
    steps,
    threads,
)  # keep sorted
