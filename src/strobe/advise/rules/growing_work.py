"""Each step takes longer than the one before, because it goes through what earlier steps left.

## What it is
Something grows with every step, and every step goes through all of it: a tensor that results are
concatenated to, a history that is sorted, averaged or plotted as a whole, a hidden state that is
never detached, so that the backward pass runs through all earlier steps. The time per step grows
with the number of steps, and the time of the training with its square.

## How it is judged
The steps are divided into eight parts. What is between the passes (without waits for data and
evaluation), or the backward pass, must be longer in each part than in the one before (one may be
an exception), and at least half as long again in the last as in the first. The rest of the step
must not grow with it: longer episodes or sequences, or a machine that gets busier, make the whole
step longer. The cost is what a step takes beyond what the first steps took, as an average over the
run; it grows as training goes on. The line is where the training thread was sampled in the second
half of the run.

## How to fix
Append to a Python list, and concatenate or summarize once at the end. Keep running sums instead of
histories. Detach what is carried from one step to the next (`hidden = hidden.detach()`), and leave
`retain_graph=True` out.
"""

from typing import NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.evidence.step_parts import between_parts_ns
from strobe.advise.evidence.trend import slope
from strobe.advise.finding import CannotTell, Clear, Evidence, Figure, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Array, Training
from strobe.units import duration

NAME = "growing-work"

# Fewer do not show whether growth goes on.
FEWEST_STEPS = 40
PARTS = 8
MOST_FALLING = 1
# The last part takes this many times what the first one took.
GROWN_RATIO = 1.5
# Less is lost in the ordinary cost of a loop.
LEAST_GROWN_NS = 300_000
# The rest of the step may grow by this part of what the growing part does, relative to its own
# beginning.
REST_GROWS_RATIO = 0.33

_BETWEEN, _BACKWARD = "between", "backward"
_PHASES = {_BETWEEN: ("gap", "rest"), _BACKWARD: ("backward",)}


class Growth(NamedTuple):
    part: str
    rank: int
    first_ns: float  # in the first eighth of the steps
    last_ns: float  # in the last one
    excess_ns: float  # beyond what the first step took, as an average
    step_ns: float


def check(training: Training) -> Verdict:
    if training.step_count < FEWEST_STEPS * max(1, len(training.ranks)):
        return CannotTell(
            "there are too few steps to judge whether they get longer",
            f"record at least {FEWEST_STEPS} steps",
        )
    between = between_parts_ns(training)
    found = [
        growth
        for rank in training.ranks
        for part, lengths in ((_BETWEEN, between), (_BACKWARD, training.steps["backward_ns"]))
        if (growth := _growth(training, rank, part, lengths)) is not None
    ]
    if not found:
        return Clear("steps do not get longer")
    return _finding(training, max(found, key=lambda growth: growth.excess_ns))


def _finding(training: Training, growth: Growth) -> Finding:
    middle = float(np.median(training.steps["step"]))
    names = ", ".join(f"'{name}'" for name in _PHASES[growth.part])
    found = stack_lines.line_of(training, f"phase IN ({names}) AND step > {middle}")
    where = found.line if found else training.place("backward")
    share = min(0.99, growth.excess_ns / growth.step_ns)
    what = "The backward pass" if growth.part == _BACKWARD else "The work between steps"
    return Finding(
        title=f"{what} gets longer with every step: {duration(growth.first_ns)} at first, "
        f"{duration(growth.last_ns)} at the end",
        why="The rest of the step does not get longer, so this part goes through what earlier "
        "steps left.",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_fixes(training, growth.part, f" at {where}" if where else ""),
        evidence=(Evidence("steps", _rows(training, growth)),),
        where=str(where) if where else None,
        is_certain=False,
        derivation=(
            Figure("per step", growth.step_ns, "ns"),
            Figure("per step more than the first steps took", growth.excess_ns, "ns"),
        ),
    )


def _fixes(training: Training, part: str, at: str) -> tuple[str, ...]:
    if part == _BACKWARD:
        return (fix("detach-state", training.framework, at),)
    return (
        f"Do not go through everything collected so far in every step{at}: append to a list, and "
        "concatenate or summarize it once at the end",
        "or keep running sums, or only the last values (collections.deque(maxlen=1000))",
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
    if not _goes_on(medians) or last_ns - first_ns < LEAST_GROWN_NS:
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


def _goes_on(medians: Array) -> bool:
    return int((np.diff(medians) <= 0).sum()) <= MOST_FALLING


def _rows(training: Training, growth: Growth) -> tuple[dict[str, int], ...]:
    """Steps from the first to the last, evenly apart."""
    steps = training.steps
    mine = np.flatnonzero(steps["rank"] == growth.rank)
    columns = ("rank", "step", "dur_ns", "gap_ns", "forward_ns", "backward_ns", "rest_ns")
    chosen = mine[np.linspace(0, len(mine) - 1, PARTS).astype(int)]
    return tuple({name: int(steps[name][at]) for name in columns} for at in chosen.tolist())
