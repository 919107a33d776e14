"""Device memory is allocated again in every step.

## What it is
PyTorch caches device memory that is no longer used, and reuses it within microseconds. If the cache
is emptied in every step (`torch.cuda.empty_cache()`), or if memory is so short that PyTorch has to
free some of the cache, each step calls the driver again. `cudaMalloc` takes up to a millisecond,
and `cudaFree` waits for everything that runs on the device.

## How it is judged
After the first steps, training needs no driver calls that allocate or free device memory. Strobe
reports them if they occur in at least 80% of the steps judged. Their cost is the time spent in
them, as far as the device was idle because the host had launched nothing.

## How to fix
Remove `torch.cuda.empty_cache()` from the loop. It does not make more memory available to PyTorch.
If nothing calls it, memory is short or fragmented: use a smaller batch, or set
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
"""

from typing import Any

from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.evidence.event_origin import Origin, origins
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.messages import message
from strobe.units import count, percent

NAME = "allocator-churn"

# After the first steps, the cache serves almost every request; a single step may still grow it.
STEPS_RATIO = 0.8
_CALLS = ("cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "cuMemCreate", "cuMemUnmap")


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    calls = _calls(training)
    steps = sum(time.steps for time in times)
    if not calls:
        return Clear(message("allocator-churn.none", steps=count(steps)))
    affected = len({(call["rank"], call["step"]) for call in calls})
    if affected < STEPS_RATIO * steps:
        return Clear(
            message("allocator-churn.few-steps", count=count(affected), steps=count(steps))
        )
    spent: dict[int, int] = {}
    for call in calls:
        spent[call["rank"]] = spent.get(call["rank"], 0) + call["dur_ns"]
    total_ns = sum(time.total_ns for time in times)
    lost_ns = sum(min(spent.get(time.rank, 0), time.late_ns) for time in times)
    share = lost_ns / max(1, total_ns)
    per_step = count(round(len(calls) / max(1, steps)))
    if share < SMALLEST_SHARE:
        return Clear(message("allocator-churn.small", count=per_step, share=percent(share)))
    origin = origins(training, [call["id"] for call in calls[:1]])
    place = next(iter(origin.values()), Origin())
    line = str(place.line) if place.line else None
    calls_id = "allocator-churn.one-call" if per_step == "1" else "allocator-churn.calls"
    return Finding(
        title=message("allocator-churn.title", share=percent(share)),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("keep-memory-cache", training.framework, line),
            message("allocator-churn.smaller-batch"),
        ),
        evidence=(Evidence("events", tuple(calls[:10])),),
        where=place.where,
        why=message(calls_id, count=per_step),
    )


def _calls(training: Training) -> list[dict[str, Any]]:
    """In the steps judged; the longest call comes first."""
    return training.rows(
        """
        SELECT e.id, t.rank, s.step, e.ts_ns, e.dur_ns, e.name
        FROM events e JOIN tracks t ON t.id = e.track_id
        ASOF JOIN device_steps s ON s.rank = t.rank AND s.ts_ns <= e.ts_ns
        WHERE e.kind = 'runtime' AND e.name IN $names AND e.ts_ns < s.end_ns
        ORDER BY e.dur_ns DESC, e.id
        """,
        {"names": list(_CALLS)},
    )
