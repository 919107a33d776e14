"""Python's garbage collector stops the training loop.

## What it is
Python looks now and then for objects that only refer to each other. While it looks, the training
loop stands still. The more objects live, the longer a full look takes: millions of small objects
(a dataset held as lists of dicts, logged tensors, graphs kept by mistake) make it tens of
milliseconds.

## How it is judged
Every pause of at least 0.1 ms is recorded. Their sum inside the judged steps is the cost. Full
searches in most steps are seldom Python's own choice: then the line that was seen behind them, by
looks that the search had let wait, is told; it calls `gc.collect()`, or something that does.

## How to fix
After everything long-lived is loaded, `gc.collect(); gc.freeze()` takes it out of the search;
`gc.disable()` in the loop and `gc.collect()` between epochs ends the pauses. Holding data in numpy
arrays or tensors instead of Python objects removes the cause. A `gc.collect()` in every step, which
none of these ends, is seldom needed: what nothing refers to any more is freed at once without it.
"""

from typing import Any

from strobe.advise.evidence.stack_lines import CAUGHT_NS, TYPICAL_LOOKS, Seen, line_of
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.units import duration, percent

NAME = "gc-pause"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05
# Full searches in this part of the steps, with this part of the cost, are asked for by somebody.
MOST_STEPS_RATIO = 0.5
MOST_COST_RATIO = 0.5
# A look that was let wait comes so soon behind the pause.
_BEHIND_NS = 1_000_000


def check(training: Training) -> Verdict:
    pauses = training.rows("""
        SELECT o.id, o.rank, s.step, o.ts_ns, o.dur_ns, o.name FROM outline o
        ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'gc' AND o.ts_ns < s.ts_ns + s.dur_ns ORDER BY o.dur_ns DESC
    """)
    inside = [pause for pause in pauses if training.judges(pause["rank"], pause["step"])]
    share = sum(pause["dur_ns"] for pause in inside) / max(1, training.total_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(f"{len(inside)} pauses, {percent(share)} of step time")
    longest = inside[0]["dur_ns"]
    asking = _who_asks(training, inside)
    return Finding(
        title=f"Python's garbage collector takes {percent(share)} of step time, "
        f"up to {duration(longest)} at once",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_fixes(asking),
        evidence=(Evidence("events", tuple(inside[:10])),),
        where=str(asking) if asking else None,
    )


def _who_asks(training: Training, pauses: list[dict[str, Any]]) -> Seen | None:
    """The line that makes Python search in full in most steps; None if nobody does."""
    full = [pause for pause in pauses if str(pause["name"]).endswith("generation 2")]
    cost_ns = sum(pause["dur_ns"] for pause in full)
    steps = {(pause["rank"], pause["step"]) for pause in full}
    if len(steps) < MOST_STEPS_RATIO * training.step_count:
        return None
    if cost_ns < MOST_COST_RATIO * sum(pause["dur_ns"] for pause in pauses):
        return None
    return line_of(
        training,
        f"""waited_ns >= {CAUGHT_NS} AND EXISTS (
            FROM outline o WHERE o.kind = 'gc' AND o.rank = {TYPICAL_LOOKS}.rank
            AND {TYPICAL_LOOKS}.ts_ns BETWEEN o.ts_ns AND o.ts_ns + o.dur_ns + {_BEHIND_NS}
        )""",
        looks=TYPICAL_LOOKS,
    )


def _fixes(asking: Seen | None) -> tuple[str, ...]:
    own = (
        "before the training loop: import gc; gc.collect(); gc.freeze()",
        "or gc.disable() in the loop, and gc.collect() between epochs",
    )
    if asking is None:
        return own
    return (
        f"leave out the gc.collect() at {asking}, or call it once an epoch: it searches in full in "
        "every step",
        *own,
    )
