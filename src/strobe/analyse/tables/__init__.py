"""Questions that a table answers. To add one, write its module and add one line here."""

from typing import Any, Protocol

import duckdb

from strobe.analyse.tables.data import (
    data_pipeline,
    data_queues,
    data_shortages,
    data_steps,
    queue_history,
)
from strobe.analyse.tables.devices import (
    copies,
    device_time,
    idle,
    kernels,
    launch_queue,
    launch_queue_statistics,
    launches,
)
from strobe.analyse.tables.memory import (
    memory,
    memory_blocks,
    memory_curve,
    memory_holders,
    memory_steps,
)
from strobe.analyse.tables.operators import modules, operator_calls, operator_types, operators
from strobe.analyse.tables.steps import (
    call_history,
    communication,
    core_users,
    counter_statistics,
    gaps,
    overlap,
    python_lines,
    step_edges,
    step_history,
    step_phases,
    step_statistics,
    steps,
    threads,
)
from strobe.analyse.tables.training import metrics
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
    metrics,
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
