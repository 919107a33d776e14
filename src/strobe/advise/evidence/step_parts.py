"""Parts of a step that several rules need."""

import numpy as np

from strobe.advise.training import Array, Training
from strobe.analyse.intervals import covered

_EVALUATIONS = """
    SELECT o.rank, s.step, o.ts_ns, o.end_ns FROM outline o
    ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
    WHERE o.kind = 'annotation' AND starts_with(o.name, 'evaluation')
"""


def between_parts_ns(training: Training) -> Array:
    """For each step judged, the time between its parts, without waits for data and evaluation."""
    steps = training.steps
    evaluated = dict(
        training.run.sql(f"""
        SELECT (rank, step), covered_ns FROM ({covered(_EVALUATIONS, "rank, step")})
    """).fetchall()
    )
    keys = zip(steps["rank"].tolist(), steps["step"].tolist(), strict=True)
    evaluation_ns = np.array([evaluated.get(key, 0) for key in keys])
    # An evaluation lasts from its first forward pass to its last one, and may end in the next step.
    between: Array = (steps["gap_ns"] - steps["data_ns"] + steps["rest_ns"] - evaluation_ns).clip(0)
    return between
