"""What the queues of a data pipeline show where no training step was recorded."""

from typing import Any

from strobe.advise.data.queue_pipeline import fixes_of, operation_of, queue_levels
from strobe.advise.finding import CannotTell, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.analyse.tables.data import data_pipeline
from strobe.analyse.tables.steps import steps
from strobe.messages import Message, message
from strobe.units import percent


def pipeline_alone(training: Training) -> Verdict:
    """The slow operation by the queues, as a warning: without steps its cost is unknown."""
    steps.prepare(training.run)
    relation = data_pipeline.run(training.run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    at_fault = next((row for row in rows if row["is_at_fault"]), None)
    operation = operation_of(at_fault["stage"]) if at_fault is not None else None
    if at_fault is None or operation is None:
        return CannotTell(
            message("data-starvation.no-steps"), message("data-starvation.record-steps")
        )
    workers = at_fault["workers"] or 1
    return Finding(
        title=message("data-starvation.pipeline-title", operation=at_fault["stage"]),
        why=_why(training, rows, at_fault),
        share=0.0,
        expected_speedup=1.0,
        fixes=fixes_of(operation, {"workers": workers}, None, 2 * workers, True),
        evidence=(Evidence(data_pipeline.NAME, tuple(rows)),),
        is_certain=False,
        is_warning=True,
    )


def _why(training: Training, rows: list[dict[str, Any]], at_fault: dict[str, Any]) -> Message:
    same = [row for row in rows if all(row[key] == at_fault[key] for key in ("rank", "loader"))]
    queues = queue_levels(same, at_fault)
    ((waited_ns, whole_ns),) = training.run.sql(
        "SELECT sum(dur_ns), max(end_ns) - min(ts_ns) FROM outline WHERE kind = 'data'"
    ).fetchall()
    if not whole_ns:
        return message("data-starvation.pipeline-why", queues=queues)
    waits = percent(float(waited_ns) / float(whole_ns))
    return message("data-starvation.pipeline-why-waits", queues=queues, waits=waits)
