"""Python's garbage collector pauses training.

## What it is
Python regularly searches for objects that only refer to each other, and pauses the training loop
meanwhile. The more objects exist, the longer a full collection takes. With millions of small
objects (a dataset held as lists of dicts, logged tensors, graphs retained by mistake) it takes tens
of milliseconds.

## How it is judged
Every pause of at least 0.1 ms is recorded. The cost is the sum of the pauses in the steps judged.
Python itself rarely chooses to run full collections in most steps. Where they do run, Strobe names
the line that triggers them: `gc.collect()`, or a function that calls it. The line comes from stack
samples that had to wait for the collection to end.

## How to fix
Call `gc.collect(); gc.freeze()` after everything long-lived is loaded, which excludes it from
later collections. Or call `gc.disable()` in the loop and `gc.collect()` between epochs, which ends
the pauses. Storing data in numpy arrays or tensors instead of Python objects removes the cause.

None of these helps against a `gc.collect()` in every step. It is rarely needed there, because
Python frees an object immediately when nothing refers to it any more.
"""

from typing import Any

from strobe.advise.evidence.stack_lines import CAUGHT_NS, TYPICAL_LOOKS, Seen, line_of
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "gc-pause"

# Full collections in this part of the steps, with this part of the cost, are triggered by a call.
MOST_STEPS_RATIO = 0.5
MOST_COST_RATIO = 0.5
# A sample that had to wait for the collection is taken within this time after the pause.
_AFTER_PAUSE_NS = 1_000_000


def check(training: Training) -> Verdict:
    pauses = training.rows("""
        SELECT o.id, o.rank, s.step, o.ts_ns, o.dur_ns, o.name FROM outline o
        ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'gc' AND o.ts_ns < s.ts_ns + s.dur_ns ORDER BY o.dur_ns DESC
    """)
    inside = [pause for pause in pauses if training.judges(pause["rank"], pause["step"])]
    share = sum(pause["dur_ns"] for pause in inside) / max(1, training.total_ns)
    if share < SMALLEST_SHARE:
        return Clear(_small(len(inside), share))
    longest = duration(inside[0]["dur_ns"])
    caller = _caller(training, inside)
    why = message("gc-pause.longest-pause", longest=longest)
    if caller is not None:
        why = message("gc-pause.longest-pause-and-caller", longest=longest, line=caller)
    return Finding(
        title=message("gc-pause.title", share=percent(share)),
        why=why,
        share=share,
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=_fixes(caller),
        evidence=(Evidence("events", tuple(inside[:10])),),
        where=str(caller) if caller else None,
    )


def _small(pauses: int, share: float) -> Message:
    if pauses == 0:
        return message("gc-pause.no-pauses")
    if pauses == 1:
        return message("gc-pause.one-short-pause", share=percent(share))
    return message("gc-pause.short-pauses", count=count(pauses), share=percent(share))


def _caller(training: Training, pauses: list[dict[str, Any]]) -> Seen | None:
    """The line that triggers full collections in most steps; None if no line does."""
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
            AND {TYPICAL_LOOKS}.ts_ns BETWEEN o.ts_ns AND o.ts_ns + o.dur_ns + {_AFTER_PAUSE_NS}
        )""",
        looks=TYPICAL_LOOKS,
    )


def _fixes(caller: Seen | None) -> tuple[Message, ...]:
    general = (message("gc-pause.freeze"), message("gc-pause.disable"))
    if caller is None:
        return general
    return (message("gc-pause.remove-call", line=caller), *general)
