"""Every so many steps something holds training up: a checkpoint, an evaluation, a plot.

## What it is
Most steps are alike, but every Nth takes much longer, because the loop then saves the model,
evaluates it, writes a log or draws a picture, and training waits for it.

## How it is judged
A step that is longer than the others by a tenth and by more than their noise (waits for data and
Strobe's own work aside) is a stall. Stalls are periodic if there are three or more, alike, and so
many lie equally far apart that it cannot be chance. Where threads lacked a core for a fifth of the
time, passes of any length say nothing, and only stalls between them count. Their length beyond that
of the other steps, spread over all, is the cost. An evaluation is wanted, and is told of only if it
takes a quarter of the time. One that runs with gradients enabled is first of all
`gradients-in-evaluation`. A model that acts in an environment (gymnasium) between its updates is
not a stall.

## How to fix
Do it less often; the cost falls with it. A checkpoint can be written while training goes on: copy
the state, then save the copy in a thread. Evaluate on a part of the data, without gradients, in
larger batches. Draw and log from values that were kept, at the end.
"""

import json
import math
import re
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.evidence.repeated_code import RareCode, rare_code
from strobe.advise.evidence.side_work import (
    LOADER_START,
    background_fix,
    is_rollout,
    kind_at,
    kind_of,
)
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Array, Training
from strobe.units import duration, percent

NAME = "periodic-stall"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05
# A quarter of the time for judging a model is more than its training can be expected to bear.
TOO_MUCH_EVALUATION_RATIO = 0.25

# A stall takes this much of the median step more, and five standard deviations of their noise
# (1.4826 times the median absolute deviation estimates one). Less costs 5% in no case that comes
# every second step or less often.
STALL_RATIO = 0.1
STALL_DEVIATIONS = 5 * 1.4826
# In passes stalls must also come on the very step, and be longest in the same part of it: the
# machine's own are regular in time, not in steps, and hit any part.
SAME_PART_RATIO = 0.8
# A busy machine gives a core to another process for about so long, and does it regularly.
STALL_NS = 3_000_000
# Passes compute, and a busy machine makes single ones longer: only what is plainly more counts.
STALL_IN_PASSES_RATIO = 0.5
# Where the training thread lacks a core for this part of the time, others that compute for it do
# as well, which nobody counts: schedulers serve them by turns, as regularly as any stall.
CROWDED_RATIO = 0.2
# Stalls that come of one thing are alike: within a third of each other.
ALIKE_RATIO = 0.3
# A loop that counts anew in each epoch is a little irregular, a machine's hiccups are much.
REGULAR_RATIO = 0.25
# Some period fits any long steps a little. It must fit them better than one in 500 would by chance.
MOST_CHANCE = 0.002
# As good as the longest.
NEARLY_RATIO = 0.8
# Two may be chance.
FEWEST_STALLS = 3

# What functions that judge a model are called.
_EVALUATES = re.compile(r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|generate)(_|$)")

_PARTS = ("gap", "forward", "backward", "all_reduce", "update", "rest")


class Stalls(NamedTuple):
    """Steps of a rank that are long at regular distances."""

    rank: int
    period: int
    steps: tuple[int, ...]  # their numbers
    excess_ns: int  # what they take beyond the median step, together
    typical_ns: float  # of the other steps
    code: RareCode | None = None  # that only these steps run

    @property
    def is_regular(self) -> bool:
        """Of stalls without such code the distances are the evidence. Of others some may not have
        been sampled, and two periods are as good as one."""
        off = [min(n % self.period, -n % self.period) for n in np.diff(self.steps).tolist()]
        return self.code is None or max(off) <= 1 < self.period - 1


def check(training: Training) -> Verdict:
    found = [
        stalls
        for rank in training.ranks
        for stalls in (_stalls(training, rank), _of_same_code(training, rank))
        if stalls is not None
    ]
    if not found:
        return Clear("no periodic slow steps")
    # Distances tell every stall, samples of code only those that they hit.
    found = [one for one in found if one.code is None] or found
    shares = [one.excess_ns / max(1, _total_ns(training, one)) for one in found]
    # Stalls whose code is known say more than those of which only the distances are.
    share, stalls = max(
        (one for one in zip(shares, found, strict=True) if one[0] >= NEARLY_RATIO * max(shares)),
        key=lambda one: (one[1].code is not None, one[0]),
    )
    length_ns = stalls.excess_ns / len(stalls.steps)
    described = (
        f"every {stalls.period} steps one takes {duration(length_ns)} longer, {percent(share)}"
    )
    if needed := _needed(training, stalls):
        return Clear(f"{described}: {needed}")
    evaluated = stack_lines.evaluated_ns(training, stalls.rank)
    inside = [evaluated[step] for step in stalls.steps if step in evaluated]
    evaluation_ns, has_gradients = sum(ns for ns, _ in inside), any(on for _, on in inside)
    is_evaluation = evaluation_ns >= 0.5 * stalls.excess_ns or _is_called_evaluation(
        training, stalls
    )
    if is_evaluation and has_gradients:
        return Clear(f"{described}: an evaluation, which first of all runs with gradients enabled")
    least = TOO_MUCH_EVALUATION_RATIO if is_evaluation else WORTH_TELLING_RATIO
    if share < least:
        return Clear(described + (": an evaluation" if is_evaluation else ""))
    phases = _longer_phases(training, stalls)
    condition = (
        f"rank = {stalls.rank} AND step IN ({', '.join(map(str, stalls.steps))}) "
        f"AND phase IN ({', '.join(repr(name) for name in phases)})"
    )
    line: object = stack_lines.line_of(training, condition, into_modules="forward" in phases)
    line = stalls.code.line if stalls.code else line
    what = kind_of(stalls.code.stacks) if stalls.code else kind_at(training, condition)
    what = "an evaluation" if is_evaluation else what
    if what == LOADER_START:
        return Clear(f"{described}: {what}, which is data-starvation")
    return _finding(training, stalls, share, what, str(line) if line else None)


def _needed(training: Training, stalls: Stalls) -> str | None:
    """What is done in these steps, if another rule judges it or training cannot go without."""
    if stack_lines.compiled_ns(training, stalls.rank, set(stalls.steps)) >= 0.5 * stalls.excess_ns:
        return "something is compiled, which is recompilation"
    if is_rollout(training):
        return "the model acts in an environment, which training needs"
    return None


def _finding(
    training: Training, stalls: Stalls, share: float, what: str | None, where: str | None
) -> Finding:
    length_ns = stalls.excess_ns / len(stalls.steps)
    at = f" at {where}" if where else ""
    name = (what or "something") + at
    rarely = percent(share / (10 - 9 * share))
    fixes = [
        f"do it{at} every {10 * stalls.period} steps instead of every {stalls.period}: "
        f"it then costs {rarely}"
        if stalls.is_regular
        else f"do it{at} ten times less often: it then costs {rarely}"
    ]
    if asynchronous := background_fix(training, what):
        fixes.insert(0, asynchronous + (f" ({where})" if where else ""))
    if what == "an evaluation":
        fixes.append(fix("evaluate-less", training.framework))
    return Finding(
        title=f"{name} stalls training {_how_often(training, stalls)} for {duration(length_ns)}, "
        f"{percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=tuple(fixes),
        evidence=(Evidence("steps", tuple(_rows(training, stalls))),),
        where=where,
    )


def _how_often(training: Training, stalls: Stalls) -> str:
    if stalls.is_regular:
        return f"every {stalls.period} steps"
    count = int((training.steps["rank"] == stalls.rank).sum())
    return f"in {len(stalls.steps)} of {count} steps"


def _of_same_code(training: Training, rank: int) -> Stalls | None:
    """Steps that are long because of the same line, which other steps do not run."""
    steps = training.steps
    mine = steps["rank"] == rank
    whole = (steps["dur_ns"] - steps["recorder_ns"])[mine]
    typical_ns = float(np.median(whole)) if len(whole) else 0.0
    code = rare_code(training, rank, typical_ns)
    if code is None:
        return None
    if kind_of(code.stacks) is None and not _has_its_own_time(training, rank, code):
        return None
    period = max(2, round(float(np.median(np.diff(code.steps)))))
    return Stalls(rank, period, code.steps, int(code.length_ns.sum()), typical_ns, code)


def _is_called_evaluation(training: Training, stalls: Stalls) -> bool:
    """By the names of functions that only these steps are in: where no hook marks evaluations."""
    code = stalls.code or rare_code(training, stalls.rank, stalls.typical_ns)
    if code is None or not {*code.steps} <= {*stalls.steps}:
        return False
    names = {name for stack in code.stacks for _, _, name in json.loads(stack)}
    return any(_EVALUATES.search(str(name)) for name in names)


def _has_its_own_time(training: Training, rank: int, code: RareCode) -> bool:
    """Whether it takes longer than the thread lacked a core in those steps: on a busy machine any
    line may be interrupted, and threads that compute for it lack cores as well."""
    mine = training.steps["rank"] == rank
    if training.no_core_ns[mine].sum() >= CROWDED_RATIO * training.steps["dur_ns"][mine].sum():
        return False
    no_core = dict(zip(training.steps["step"][mine].tolist(), training.no_core_ns[mine].tolist(),
                       strict=True))  # fmt: skip
    own_ns = code.length_ns - np.array([no_core.get(step, 0.0) for step in code.steps])
    return bool((own_ns >= 0.5 * code.length_ns).all())


def _stalls(training: Training, rank: int) -> Stalls | None:
    """Regular stalls between the parts of steps, where the noise of computing is not; else such
    that only the length of whole steps shows."""
    steps = training.steps
    mine = steps["rank"] == rank
    number = steps["step"][mine].astype(np.int64)
    column = {name: values[mine].astype(np.float64) for name, values in steps.items()}
    # What others took of the cores is in any part of a step, and none of its own.
    no_core = training.no_core_ns[mine]
    whole = column["dur_ns"] - column["recorder_ns"] - column["data_ns"] - no_core
    # As much of it as every step lacks is in the passes, which all of them have.
    stolen = (no_core - np.median(no_core)).clip(0) if len(no_core) else no_core
    between = (column["gap_ns"] - column["data_ns"] + column["rest_ns"] - stolen).clip(0)
    typical_ns = float(np.median(whole)) if len(whole) else 0.0
    found = _regular(rank, number, between, STALL_RATIO * typical_ns)
    if found is None and no_core.sum() < CROWDED_RATIO * column["dur_ns"].sum():
        least_ns = STALL_IN_PASSES_RATIO * typical_ns
        found = _regular(rank, number, whole, least_ns, is_exact=True)
        if found is not None and _same_part_ratio(column, number, found) < SAME_PART_RATIO:
            return None
    return found


def _same_part_ratio(column: dict[str, Array], number: Array, stalls: Stalls) -> float:
    """How many of the stalls are longest in the same part of the step."""
    is_stall = np.isin(number, stalls.steps)
    parts = np.stack([column[f"{name}_ns"] for name in _PARTS])
    longer = parts[:, is_stall] - np.median(parts[:, ~is_stall], axis=1, keepdims=True)
    return float(np.bincount(longer.argmax(axis=0)).max() / is_stall.sum())


def _regular(
    rank: int, number: Array, length: Array, least_ns: float, is_exact: bool = False
) -> Stalls | None:
    if len(number) < 2 * FEWEST_STALLS:
        return None
    # Of the shorter half: where every second step is long, the median may lie on either side.
    shorter = np.sort(length)[: len(length) // 2]
    base = float(np.median(shorter))
    noise = float(np.median(np.abs(shorter - base)))
    excess = length - base
    is_long = excess > max(least_ns, STALL_NS, STALL_DEVIATIONS * noise)
    if is_long.sum() < FEWEST_STALLS:
        return None
    # A hiccup of the machine among them is shorter than what comes again and again.
    is_long &= excess >= ALIKE_RATIO * np.quantile(excess[is_long], 0.75)
    apart = np.diff(number[is_long])
    if len(apart) < FEWEST_STALLS - 1:
        return None
    period = round(float(np.median(apart)))
    slacks = {0} if is_exact else {0, 1, int(REGULAR_RATIO * period)}
    if period < 2 or _chance(apart, period, slacks, len(apart) / len(number)) > MOST_CHANCE:
        return None
    numbers = tuple(number[is_long].tolist())
    return Stalls(rank, period, numbers, int(excess[is_long].sum()), base)


def _chance(apart: Array, period: int, slacks: set[int], ratio: float) -> float:
    """How likely so many distances fit the period, were that part of all steps long at random.

    They fit if they are so many steps off at most: the likeliest of these to be no chance counts.
    """
    chances = []
    for slack in slacks:
        # Steps that are not judged may hide a stall: two periods are as good as one.
        fits = np.array([
            min(distance % period, -distance % period) <= slack
            for distance in range(1, int(apart.max()) + 1)
        ])  # fmt: skip
        at_random = ratio * (1 - ratio) ** np.arange(len(fits))
        chance = float(at_random[fits].sum()) / max(1e-12, float(at_random.sum()))
        count = int(fits[apart - 1].sum())
        chances.append(_at_least(count, len(apart), chance))
    return min(1.0, len(slacks) * min(chances))


def _at_least(count: int, tries: int, chance: float) -> float:
    """How likely so many of the tries succeed."""
    chance = min(max(chance, 1e-12), 1 - 1e-12)
    yes, no = math.log(chance), math.log(1 - chance)
    ways = (_log_ways(tries, k) + k * yes + (tries - k) * no for k in range(count, tries + 1))
    return min(1.0, sum(map(math.exp, ways)))


def _log_ways(tries: int, count: int) -> float:
    """The logarithm of how many ways there are: a number of its own would be too large."""
    return math.lgamma(tries + 1) - math.lgamma(count + 1) - math.lgamma(tries - count + 1)


def _total_ns(training: Training, stalls: Stalls) -> int:
    """Less what others took of the cores where it is left out of the stalls, too."""
    steps = training.steps
    own = steps["dur_ns"] - steps["recorder_ns"]
    if stalls.code is None:
        own = own - training.no_core_ns
    return int(own[steps["rank"] == stalls.rank].sum())


def _longer_phases(training: Training, stalls: Stalls) -> list[str]:
    """The parts of a step in which the stalls are longer than the other steps."""
    steps = training.steps
    is_stall = (steps["rank"] == stalls.rank) & np.isin(steps["step"], stalls.steps)
    others = (steps["rank"] == stalls.rank) & ~is_stall
    longer = {
        name: float(np.median(steps[f"{name}_ns"][is_stall]))
        - float(np.median(steps[f"{name}_ns"][others]))
        for name in _PARTS
    }
    most = max(longer.values())
    phases = [name for name, ns in longer.items() if ns >= 0.2 * most]
    return [*phases, "data"] if "gap" in phases else phases


def _rows(training: Training, stalls: Stalls) -> list[dict[str, Any]]:
    numbers = ", ".join(map(str, stalls.steps[:8]))
    return training.rows(f"""
        SELECT rank, step, dur_ns, gap_ns, forward_ns, backward_ns, update_ns, rest_ns, data_ns
        FROM step_times WHERE rank = {stalls.rank} AND step IN ({numbers}) ORDER BY step
    """)
