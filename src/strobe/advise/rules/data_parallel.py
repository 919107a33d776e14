"""`nn.DataParallel` drives several devices from one Python process.

## What it is
`torch.nn.DataParallel` copies the model to every device in each step, scatters the batch, runs a
Python thread for each device and gathers the results on the first one. Only one of these threads
runs Python at a time (the GIL), so that the devices wait for their launches, and the first device
has more to do and less memory than the others.

## How it is judged
The time of the operators that copy the model and the batch, and collect results and gradients
(`Broadcast`, `Scatter`, `Gather` and their backward), on the host, in the steps recorded. Waiting
for the GIL comes on top and is not counted, so the gain is at least this.

## How to fix
`DistributedDataParallel`, one process for each device: `torchrun --nproc-per-node N train.py`. The
model stays on its device, and gradients are exchanged while the backward pass runs.
"""

from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.units import percent

NAME = "data-parallel"

WORTH_TELLING_RATIO = 0.05
_OPERATORS = (
    "Broadcast", "Scatter", "Gather", "BroadcastBackward", "ScatterBackward", "GatherBackward",
)  # fmt: skip


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
        return Clear("no nn.DataParallel was seen")
    ((total_ns,),) = training.run.sql("""
        SELECT sum(dur_ns) FROM step_times
        SEMI JOIN (SELECT DISTINCT step FROM events WHERE kind = 'op') USING (step)
    """).fetchall()
    share = min(0.95, sum(row["self_ns"] for row in rows) / max(1, total_ns or 0))
    if share < WORTH_TELLING_RATIO:
        return Clear(f"nn.DataParallel takes {percent(share)} of step time to copy model and data")
    place = training.place("model call")
    return Finding(
        title="nn.DataParallel copies the model to every device in each step: at least "
        f"{percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            "use DistributedDataParallel, one process for each device: "
            "torchrun --nproc-per-node N train.py",
        ),
        evidence=(Evidence("operators", tuple(rows)),),
        where=str(place) if place else None,
        is_certain=False,
    )
