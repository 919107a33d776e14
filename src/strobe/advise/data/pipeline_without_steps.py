"""What the queues of a data pipeline show where no training step was recorded."""

import re

from strobe.advise.data.queue_pipeline import fixes_of
from strobe.advise.finding import CannotTell, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.analyse.tables.data import data_pipeline
from strobe.analyse.tables.steps import steps
from strobe.units import percent

_LABEL = re.compile(r"(\w+?)(?:Op)?_\d+\Z")


def pipeline_alone(training: Training) -> Verdict:
    """The operation that the queues point at, as a warning: without steps its cost is unknown."""
    steps.prepare(training.run)
    relation = data_pipeline.run(training.run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    at_fault = next((row for row in rows if row["is_at_fault"]), None)
    label = _LABEL.match(at_fault["stage"]) if at_fault is not None else None
    if at_fault is None or label is None:
        return CannotTell(
            "no training step was seen", "record a training loop: strobe run train.py"
        )
    workers = at_fault["workers"] or 1
    return Finding(
        title=f"The operation {at_fault['stage']} limits the data pipeline",
        why=f"The queues show it: {at_fault['reason']}. {_waiting(training)}",
        share=0.0,
        expected_speedup=1.0,
        fixes=fixes_of(label.group(1), {"workers": workers}, "", 2 * workers, True),
        evidence=(Evidence(data_pipeline.NAME, tuple(rows)),),
        is_certain=False,
        is_warning=True,
    )


def _waiting(training: Training) -> str:
    ((waited_ns, whole_ns),) = training.run.sql(
        "SELECT sum(dur_ns), max(end_ns) - min(ts_ns) FROM outline WHERE kind = 'data'"
    ).fetchall()
    cost = "The trace has no training steps, so the cost per step is unknown"
    if not whole_ns:
        return f"{cost}."
    ratio = percent(float(waited_ns) / float(whole_ns))
    return f"{cost}; waits for batches take {ratio} of the recorded time."
