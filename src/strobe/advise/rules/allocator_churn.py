"""Device memory is given back and allocated again in every step.

## What it is
PyTorch keeps device memory that is no longer used, and hands it out again in microseconds. If the
cache is emptied in every step (`torch.cuda.empty_cache()`), or if memory is so short that PyTorch
has to give some back, each step asks the driver again: `cudaMalloc` takes up to a millisecond, and
`cudaFree` waits for everything that runs on the device.

## How it is judged
Calls of the driver that allocate or free device memory, in at least 80% of the steps judged: after
the first steps a training needs none. What they cost is the time in them, as far as the device was
idle because the host had launched nothing.

## How to fix
Remove `torch.cuda.empty_cache()` from the loop; it makes no more memory available to PyTorch. If
nothing calls it, memory is short or fragmented: a smaller batch, or
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
"""

from typing import Any

from strobe.advise.evidence.device_model import device_times, no_device
from strobe.advise.evidence.event_origin import Origin, origins
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.units import count, percent

NAME = "allocator-churn"

# After the first steps the cache serves every request; single steps may still grow it.
STEPS_RATIO = 0.8
WORTH_TELLING_RATIO = 0.05
_CALLS = ("cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "cuMemCreate", "cuMemUnmap")


def check(training: Training) -> Verdict:
    times = device_times(training)
    if not times:
        return no_device(training)
    calls = _calls(training)
    steps = sum(time.steps for time in times)
    seen = len({(call["rank"], call["step"]) for call in calls})
    if not calls or seen < STEPS_RATIO * steps:
        return Clear(f"{seen} of {steps} steps allocate or free device memory at the driver")
    spent: dict[int, int] = {}
    for call in calls:
        spent[call["rank"]] = spent.get(call["rank"], 0) + call["dur_ns"]
    total_ns = sum(time.total_ns for time in times)
    lost_ns = sum(min(spent.get(time.rank, 0), time.late_ns) for time in times)
    share = lost_ns / max(1, total_ns)
    each = count(round(len(calls) / max(1, steps)))
    if share < WORTH_TELLING_RATIO:
        return Clear(f"{each} calls of the driver per step for memory cost {percent(share)}")
    origin = origins(training, [call["id"] for call in calls[:1]])
    place = next(iter(origin.values()), Origin())
    at = f" at {place.line}" if place.line else ""
    return Finding(
        title=f"device memory is freed and allocated again in every step: {each} calls of the "
        f"driver per step, {percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - min(0.95, share)),
        fixes=(
            f"remove torch.cuda.empty_cache() from the training loop{at}",
            "or, if nothing calls it, use a smaller batch: memory is short",
        ),
        evidence=(Evidence("events", tuple(calls[:10])),),
        where=place.where,
    )


def _calls(training: Training) -> list[dict[str, Any]]:
    """In the steps judged, the longest first."""
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
