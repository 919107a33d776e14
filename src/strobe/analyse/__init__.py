"""Questions we can answer. To add one: write its module, add one line here."""

from typing import Any, Protocol

import duckdb

from strobe.analyse import (
    call_history,
    communication,
    copies,
    core_users,
    counter_statistics,
    data_pipeline,
    data_queues,
    data_shortages,
    data_steps,
    device_time,
    gaps,
    idle,
    kernels,
    launch_queue,
    launch_queue_statistics,
    launches,
    memory,
    memory_blocks,
    memory_curve,
    memory_holders,
    memory_steps,
    modules,
    operator_calls,
    operator_types,
    operators,
    overlap,
    python_lines,
    queue_history,
    step_edges,
    step_history,
    step_phases,
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
    call_history,
    communication,
    copies,
    core_users,
    counter_statistics,
    data_pipeline,
    data_queues,
    data_shortages,
    data_steps,
    device_time,
    gaps,
    idle,
    kernels,
    launch_queue,
    launch_queue_statistics,
    launches,
    memory,
    memory_blocks,
    memory_curve,
    memory_holders,
    memory_steps,
    modules,
    operator_calls,
    operator_types,
    operators,
    overlap,
    python_lines,
    queue_history,
    step_edges,
    step_history,
    step_phases,
    step_statistics,
    steps,
    threads,
)  # keep sorted
