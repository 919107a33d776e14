"""Compiled code is compiled again and again.

## What it is
A compiled function (torch.compile, jax.jit) is made for the shapes, types and Python values it was
first called with. When one of them changes, it is compiled again, which takes seconds; after a few
times PyTorch gives up and runs it uncompiled. In JAX a function that is made anew in the loop is
compiled anew as well. Batches of changing length, a last batch that is smaller, a Python number
that changes with every step (a schedule, a counter), or a switch between training and evaluation do
this.

## How it is judged
Every compilation is recorded, with its line. Those after the first steps, which every compiled
training needs, are the cost; and where they are the most, those of the same functions in the first
steps too, but for the first of each. The share is that of the whole recorded training, in which the
compilation that must be stays. What their steps take longer than steps without any counts as
well, up to a quarter of the compiling: what follows a compilation is slow, too. Where shapes
change, the gain is a range. At most: fixed shapes cost nothing. At least: every batch is padded to
the largest, or three more sizes have to be compiled, whichever costs more.

## How to fix
`torch.compile(model, dynamic=True)`, or `torch._dynamo.mark_dynamic(x, 1)` for the dimension that
changes; `drop_last=True` in the data loader; lengths padded to a few sizes; changing numbers given
as tensors. `TORCH_LOGS=recompiles` before the command prints what changed. In JAX: pad to a few
shapes, give changing numbers as arrays and not as `static_argnums`, call `jax.jit` once, outside
the loop; `JAX_EXPLAIN_CACHE_MISSES=1` prints what changed.
"""

import math
import re
from collections import Counter
from typing import Any

import numpy as np

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Lines, Training
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.model.journal import COMPILATION, MADE_ANEW
from strobe.units import duration, percent

NAME = "recompilation"

# compilation 2 of train_step (x was float32[8], now float32[7]) at train.py:31: as recorded of
# frameworks that tell which function they compile.
_FUNCTION = re.compile(rf"{COMPILATION}\d+ of (\S+)(?: \((.*)\))?(?: at |\Z)")

# x was float32[8], now float32[7] and 1 more; of MindSpore: Float32[7], was Float32[8].
_CHANGE = re.compile(
    r"(?P<what>.+?) was (?P<was>.+?), now (?P<now>.+)|(?P<then>.+), was (?P<before>.+)"
)
# float32[8, 17]: its sizes.
_SHAPE = re.compile(r"\[(\d+(?:, *\d+)*)\]")
# float 0.5; of MindSpore: 0.5.
_NUMBER = re.compile(r"(?:(?:int|float|complex) .*)|-?[\d.]+(?:e-?\d+)?")

# A function that is first called late, to evaluate, must be compiled then.
_FIRST = re.compile(rf"{COMPILATION}1 of ")

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05

# Behind a compilation lie the first run of its program, tidying, caches gone cold; what is longer
# than that has other reasons, which come at the same time (an epoch ends, a model is evaluated).
MOST_BESIDE_RATIO = 0.25

# Fewer steps without a compilation do not tell how long one is.
FEWEST_STEPS = 5

# Where lengths are padded to a few sizes, each of them has to be compiled.
FEW_SIZES = 3

# Of no training it is foretold that hardly anything would be left.
MOST_RATIO = 0.96


def check(training: Training) -> Verdict:
    compilations = training.rows(
        """
        SELECT e.id, t.rank, s.step, e.ts_ns, e.dur_ns, e.name
        FROM events e JOIN tracks t ON t.id = e.track_id
        ASOF JOIN step_times s ON s.rank = t.rank AND s.ts_ns <= e.ts_ns
        WHERE e.kind = 'annotation' AND starts_with(e.name, $name)
            AND e.ts_ns < s.ts_ns + s.dur_ns
        ORDER BY e.dur_ns DESC
        """,
        {"name": COMPILATION},
    )
    if not compilations:
        if training.is_imported:
            return CannotTell(
                "compilations are not in this trace", "record the training: strobe run train.py"
            )
        return Clear("nothing was compiled during training")
    later = _once_more(training, compilations)
    cost_ns, total_ns = _cost_ns(training, compilations, later)
    share = cost_ns / max(1, total_ns)
    if share < WORTH_TELLING_RATIO:
        return Clear(
            f"compiled {len(compilations)} times, {len(later)} of them after the first steps"
        )
    place = called_at(later)
    often = "once" if len(later) == 1 else f"{len(later)} times"
    functions = Counter(found.group(1) for row in later if (found := _FUNCTION.match(row["name"])))
    what = functions.most_common(1)[0][0] if functions else "torch.compile"
    compiles = "is compiled" if functions else "compiles"
    least, most = _gains(total_ns, cost_ns, compilations, later)
    return Finding(
        title=f"{what} {compiles} {often} more after the first steps, {duration(cost_ns)} in "
        f"all, {percent(share)} of step time",
        share=share,
        expected_speedup=math.sqrt(least * most),
        speedup_range=(least, most) if least < most else None,
        fixes=_fixes_of_function(later) if functions else _fixes_of_torch(place),
        evidence=(Evidence("events", tuple(later[:10])),),
        where=place,
    )


def _once_more(training: Training, compilations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that were not needed. A second one in the first steps, when types have settled, is
    usual; where it goes on like that, it was the first of many."""
    again = [row for row in compilations if not _FIRST.match(row["name"])]
    is_late = [
        bool(row["step"] > WARM_UP_STEPS) or training.judges(row["rank"], row["step"])
        for row in again
    ]
    if 2 * sum(is_late) > len(again):
        is_late = [
            late or bool(_FUNCTION.match(row["name"]))
            for late, row in zip(is_late, again, strict=True)
        ]
    return [row for late, row in zip(is_late, again, strict=True) if late]


def _cost_ns(
    training: Training, compilations: list[dict[str, Any]], later: list[dict[str, Any]]
) -> tuple[float, float]:
    """What compiling once more takes, and all steps."""
    compiled: Counter[tuple[int, int]] = Counter()
    for row in later:
        compiled[row["rank"], row["step"]] += row["dur_ns"]
    not_clean = {(row["rank"], row["step"]) for row in compilations}
    steps = training.run.sql("""
        SELECT rank, step, dur_ns - recorder_ns AS dur_ns, is_counted AS is_judged
        FROM step_times ORDER BY rank, step
    """).fetchnumpy()
    keys = list(zip(steps["rank"].tolist(), steps["step"].tolist(), strict=True))
    is_judged = np.asarray(steps["is_judged"])
    is_clean = np.array([key not in not_clean for key in keys], dtype=bool)
    compiled_ns = np.array([compiled[key] for key in keys], dtype=float)
    cost_ns = compiled_ns.copy()
    for rank in training.ranks:
        mine = is_judged & (steps["rank"] == rank)
        if (mine & is_clean).sum() >= FEWEST_STEPS:
            longer_ns = steps["dur_ns"][mine] - np.median(steps["dur_ns"][mine & is_clean])
            most_ns = compiled_ns[mine] * (1 + MOST_BESIDE_RATIO)
            cost_ns[mine] = longer_ns.clip(compiled_ns[mine], most_ns)
    # All steps count, with the first compilation, which stays: it is much of a short training.
    return float(cost_ns.sum()), float(steps["dur_ns"].sum())


def _gains(
    total_ns: float,
    cost_ns: float,
    compilations: list[dict[str, Any]],
    later: list[dict[str, Any]],
) -> tuple[float, float]:
    """How much faster training is at least and at most."""
    most = 1 / (1 - min(cost_ns / total_ns, MOST_RATIO))
    padding = _padding(later)
    if padding == 1:
        return most, most
    later_ns = sum(row["dur_ns"] for row in later)
    needed_ns = sum(row["dur_ns"] for row in compilations) - later_ns
    padded_ns = (padding - 1) * max(0.0, total_ns - cost_ns - needed_ns)
    sizes_ns = min(FEW_SIZES, len(later) - 1) * later_ns / len(later)
    least = total_ns / (total_ns - cost_ns + max(padded_ns, sizes_ns))
    return min(most, max(1.0, least)), most


def _padding(compilations: list[dict[str, Any]]) -> float:
    """How many times as much there is to compute if every call gets the largest shape there was."""
    sizes: dict[str, list[int]] = {}
    for row in compilations:
        found = _FUNCTION.match(row["name"])
        change = _CHANGE.fullmatch(found.group(2) or "") if found else None
        if change is None or found is None:
            continue
        shape = _SHAPE.search(change["now"] or change["then"])
        if shape is not None:
            sizes.setdefault(found.group(1), []).append(
                math.prod(int(size) for size in shape.group(1).split(","))
            )
    of_most = max(sizes.values(), key=len, default=[1])
    return max(of_most) / max(1.0, float(np.mean(of_most)))


def _fixes_of_torch(place: str | None) -> tuple[str, ...]:
    return (
        f"torch.compile(..., dynamic=True){f' for what is called at {place}' if place else ''}",
        "keep shapes the same: drop_last=True, or lengths padded to a few sizes",
        "TORCH_LOGS=recompiles before the command tells what changed",
    )


def _fixes_of_function(compilations: list[dict[str, Any]]) -> tuple[str, ...]:
    """Where the cause was recorded with the function."""
    causes = [found.group(2) for row in compilations if (found := _FUNCTION.match(row["name"]))]
    told = [cause for cause in causes if cause]
    anew = [cause for cause in told if cause.startswith(MADE_ANEW)]
    first: list[str] = []
    if anew and 2 * len(anew) >= len(told):
        first = ["make the compiled function once, outside the loop"]
    elif told:
        first = [_fix_of_cause(next(cause for cause in told if cause not in anew))]
    return (
        *first,
        "keep shapes the same: leave out the last, smaller batch, or pad lengths to a few sizes",
        "give numbers that change as arrays, not as static arguments, and make the compiled "
        "function once, outside the loop",
    )


def _fix_of_cause(cause: str) -> str:
    """A change, with what was recorded behind a colon: names and shapes may be long."""
    change = _CHANGE.fullmatch(cause)
    if change is None:
        return f"the cause, as recorded: {cause}"
    what = change["what"] or "its arguments"
    was, now = change["was"] or change["before"], change["now"] or change["then"]
    told = f"it was {was}, now {now}" if change["what"] else f"{now}, was {was}"
    if _NUMBER.fullmatch(was):
        return f"give {change['what'] or 'the number'} as an array, not as a Python number: {told}"
    if "[" not in was:
        return f"give {what} the same value at each call: {told}"
    kind = "shape" if was.partition("[")[0] == now.partition("[")[0] else "type"
    return f"keep the {kind} of {what} the same: {told}"


def called_at(compilations: list[dict[str, Any]]) -> str | None:
    """The line that caused most of it: compilation 0/1 at train.py:31."""
    for row in compilations:
        file, colon, line = row["name"].partition(" at ")[2].rpartition(":")
        if colon and line.isdigit():
            return str(Lines(file, int(line)))
    return None
