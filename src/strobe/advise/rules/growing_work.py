"""Each step takes longer than the one before, because it processes data of all earlier steps.

## What it is
Something grows with every step, and every step processes all of it: a tensor that results are
concatenated to, a history that is sorted, averaged or plotted as a whole, or a hidden state that is
never detached, so that the backward pass runs through all earlier steps. The time per step grows
with the number of steps, and the time of the whole run with its square.

## How it is judged
Strobe divides the steps into eight parts. The time between the passes (without waits for data and
evaluation), or the backward pass, must be longer in each part than in the one before, with one
exception allowed, and at least 1.5 times as long in the last part as in the first. The rest of the
step must not grow with it: longer episodes or sequences, or a machine that gets busier, make the
whole step longer.

The cost is the time that steps take beyond the first steps, averaged over the run. It keeps growing
as training continues. The line is where the training thread was sampled in the second half of the
run.

## How to fix
Append to a Python list, and concatenate or summarize it once at the end. Keep running sums instead
of histories. Detach what is carried from one step to the next (`hidden = hidden.detach()`), and
remove `retain_graph=True`.
"""

from typing import NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.evidence.step_parts import between_parts_ns
from strobe.advise.evidence.trend import slope
from strobe.advise.finding import CannotTell, Clear, Evidence, Figure, Finding, Verdict
from strobe.advise.fixes import at_line, fix
from strobe.advise.thresholds import MOST_MEASURED, speedup
from strobe.advise.training import Array, Training
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "growing-work"

# Fewer steps do not show whether the growth continues.
FEWEST_STEPS = 40
PARTS = 8
# The number of parts that may be shorter than the one before.
MOST_SHORTER = 1
# The last part takes at least this many times as long as the first.
GROWN_RATIO = 1.5
# Less growth is lost in the ordinary cost of a loop.
LEAST_GROWTH_NS = 300_000
# The rest of the step may grow by this part of the growth, each relative to its own start.
REST_GROWS_RATIO = 0.33

_BETWEEN, _BACKWARD = "between", "backward"
_PHASES = {_BETWEEN: ("gap", "rest"), _BACKWARD: ("backward",)}


class Growth(NamedTuple):
    part: str
    rank: int
    first_ns: float  # in the first eighth of the steps
    last_ns: float  # in the last one
    excess_ns: float  # more than the first step took, averaged over the steps
    step_ns: float


def check(training: Training) -> Verdict:
    if training.step_count < FEWEST_STEPS * max(1, len(training.ranks)):
        return CannotTell(
            message("growing-work.too-few-steps"),
            message("growing-work.record-steps", steps=count(FEWEST_STEPS)),
        )
    between = between_parts_ns(training)
    found = [
        growth
        for rank in training.ranks
        for part, lengths in ((_BETWEEN, between), (_BACKWARD, training.steps["backward_ns"]))
        if (growth := _growth(training, rank, part, lengths)) is not None
    ]
    if not found:
        return Clear(message("growing-work.does-not-grow"))
    return _finding(training, max(found, key=lambda growth: growth.excess_ns))


def _finding(training: Training, growth: Growth) -> Finding:
    middle = float(np.median(training.steps["step"]))
    names = ", ".join(f"'{name}'" for name in _PHASES[growth.part])
    found = stack_lines.line_of(training, f"phase IN ({names}) AND step > {middle}")
    where = found.line if found else training.place("backward")
    share = min(MOST_MEASURED, growth.excess_ns / growth.step_ns)
    return Finding(
        title=_title(growth.part, share),
        why=message(
            "growing-work.from-first-to-last",
            first=duration(growth.first_ns),
            last=duration(growth.last_ns),
        ),
        share=share,
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=_fixes(training, growth.part, str(where) if where else None),
        evidence=(Evidence("steps", _rows(training, growth)),),
        where=str(where) if where else None,
        is_certain=False,
        derivation=(
            Figure(message("growing-work.per-step"), growth.step_ns, "ns"),
            Figure(message("growing-work.more-than-at-first"), growth.excess_ns, "ns"),
        ),
    )


def _title(part: str, share: float) -> Message:
    if part == _BACKWARD:
        return message("growing-work.backward-grows", share=percent(share))
    return message("growing-work.gap-grows", share=percent(share))


def _fixes(training: Training, part: str, line: str | None) -> tuple[Message, ...]:
    if part == _BACKWARD:
        return (fix("detach-state", training.framework, line),)
    return (
        message("growing-work.concatenate-once", at=at_line(line)),
        message("growing-work.keep-sums"),
    )


def _growth(training: Training, rank: int, part: str, lengths: Array) -> Growth | None:
    steps = training.steps
    mine = steps["rank"] == rank
    if mine.sum() < FEWEST_STEPS:
        return None
    number = steps["step"][mine].astype(float)
    whole = (steps["dur_ns"] - steps["recorder_ns"])[mine].astype(float)
    own = lengths[mine].astype(float)
    rest = (whole - own - steps["data_ns"][mine]).clip(0)
    medians, of_rest = _medians(own), _medians(rest)
    first_ns, last_ns = float(medians[0]), float(medians[-1])
    if not _keeps_growing(medians) or last_ns - first_ns < LEAST_GROWTH_NS:
        return None
    if last_ns < GROWN_RATIO * first_ns:
        return None
    if float(of_rest[-1] / max(1.0, of_rest[0])) - 1 > REST_GROWS_RATIO * (last_ns / first_ns - 1):
        return None
    per_step = slope(number, own)
    begin_ns = min(first_ns, max(0.0, float(np.median(own - per_step * number))))
    excess_ns = float(own.mean()) - begin_ns
    return Growth(part, rank, first_ns, last_ns, excess_ns, float(whole.mean()))


def _medians(lengths: Array) -> Array:
    return np.array([max(1.0, float(np.median(part))) for part in np.array_split(lengths, PARTS)])


def _keeps_growing(medians: Array) -> bool:
    return int((np.diff(medians) <= 0).sum()) <= MOST_SHORTER


def _rows(training: Training, growth: Growth) -> tuple[dict[str, int], ...]:
    """Evenly spaced steps from the first to the last."""
    steps = training.steps
    mine = np.flatnonzero(steps["rank"] == growth.rank)
    columns = ("rank", "step", "dur_ns", "gap_ns", "forward_ns", "backward_ns", "rest_ns")
    chosen = mine[np.linspace(0, len(mine) - 1, PARTS).astype(int)]
    return tuple({name: int(steps[name][at]) for name in columns} for at in chosen.tolist())
