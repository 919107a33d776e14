"""Python's garbage collector stops the training loop.

## What it is
Python looks now and then for objects that only refer to each other. While it looks, the training
loop stands still. The more objects live, the longer a full look takes: millions of small objects
(a dataset held as lists of dicts, logged tensors, graphs kept by mistake) make it tens of
milliseconds.

## How it is judged
Every pause of at least 0.1 ms is recorded. Their sum inside the judged steps is the cost.

## How to fix
After everything long-lived is loaded, `gc.collect(); gc.freeze()` takes it out of the search;
`gc.disable()` in the loop and `gc.collect()` between epochs ends the pauses. Holding data in numpy
arrays or tensors instead of Python objects removes the cause.
"""

from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.units import duration

NAME = "gc-pause"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05


def check(training: Training) -> Verdict:
    pauses = training.rows("""
        SELECT o.id, o.rank, s.step, o.ts_ns, o.dur_ns, o.name FROM outline o
        ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'gc' AND o.ts_ns < s.ts_ns + s.dur_ns ORDER BY o.dur_ns DESC
    """)
    inside = [pause for pause in pauses if training.judges(pause["rank"], pause["step"])]
    share = sum(pause["dur_ns"] for pause in inside) / max(1, training.total_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"{len(inside)} pauses, {share:.1%} of step time")
    longest = inside[0]["dur_ns"]
    return Finding(
        title=f"Python's garbage collector takes {share:.0%} of step time, "
        f"up to {duration(longest)} at once",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            "before the training loop: import gc; gc.collect(); gc.freeze()",
            "or gc.disable() in the loop, and gc.collect() between epochs",
        ),
        evidence=(Evidence("events", tuple(inside[:10])),),
    )
