"""nn.DataParallel copies the model in every step.

## What it is
`torch.nn.DataParallel` drives several devices from one Python process. In each step it copies the
model to every device, splits the batch among them, runs one Python thread per device, and gathers
the results on the first device. Only one of these threads can run Python at a time (the GIL), so
devices wait for their kernels to be launched. The first device also has more work and less free
memory than the others.

## How it is judged
Strobe adds up the host time of the operators that copy the model and the batch and that collect
results and gradients (`Broadcast`, `Scatter`, `Gather` and their backward operators), in the steps
that were recorded. Waiting for the GIL comes on top and is not counted, so the gain is at least
this.

## How to fix
Use `DistributedDataParallel` with one process per device: `torchrun --nproc-per-node N train.py`.
The model stays on its device, and gradients are exchanged while the backward pass runs.
"""

from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.frameworks import of_all
from strobe.messages import message
from strobe.units import percent

NAME = "data-parallel"

_OPERATORS = of_all(lambda framework: framework.data_parallel)


def check(training: Training) -> Verdict:
    rows = training.rows(
        """
        SELECT e.name, count(*) AS calls, sum(e.dur_ns)::BIGINT AS self_ns, min(e.id) AS event_id
        FROM events e WHERE e.kind = 'op' AND e.name IN $names AND e.step IS NOT NULL
        GROUP BY e.name ORDER BY self_ns DESC
        """,
        {"names": list(_OPERATORS)},
    )
    names = {row["name"] for row in rows}
    if not {"Broadcast", "Gather"} <= names:
        return Clear(message("data-parallel.none"))
    ((total_ns,),) = training.run.sql("""
        SELECT sum(dur_ns) FROM step_times
        SEMI JOIN (SELECT DISTINCT step FROM events WHERE kind = 'op') USING (step)
    """).fetchall()
    share = min(MOST_ESTIMATED, sum(row["self_ns"] for row in rows) / max(1, total_ns or 0))
    if share < SMALLEST_SHARE:
        return Clear(message("data-parallel.small", share=percent(share)))
    place = training.place("model call")
    return Finding(
        title=message("data-parallel.title", share=percent(share)),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            message("data-parallel.use-ddp-at", line=str(place))
            if place
            else message("data-parallel.use-ddp"),
        ),
        evidence=(Evidence("operators", tuple(rows)),),
        where=str(place) if place else None,
        is_certain=False,
        why=message("data-parallel.copies-in-each-step"),
    )
