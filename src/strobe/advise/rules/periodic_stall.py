"""Training stalls every N steps for a checkpoint, an evaluation or a plot.

## What it is
Most steps take the same time, but every Nth takes much longer, because the loop then saves the
model, evaluates it, writes a log or draws a plot, and training waits for it.

## How it is judged
A step is a stall if it is longer than the others by a tenth and by more than their noise (without
waits for data and Strobe's own work). Stalls are periodic if there are at least three, they are of
similar length, and too many are equally far apart for that to be chance. If threads had to wait
for a core for a fifth of the time, the length of passes shows nothing, and only stalls between the
passes count. The cost is the time of the stalls beyond that of the other steps, relative to all
step time.

Evaluation is wanted, so it is reported only if it takes a quarter of the time. If it runs with
gradients enabled, `gradients-in-evaluation` reports it first. A model that acts in an environment
(gymnasium) between its updates is not a stall.

## How to fix
Do it less often: the cost falls in proportion. A checkpoint can be written while training
continues: copy the state, then save the copy in a thread. Evaluate on part of the data, without
gradients, in larger batches. Draw and log saved values at the end.
"""

import json
import math
import re
from typing import Any, NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.evidence.repeated_code import RareCode, rare_code
from strobe.advise.evidence.side_work import (
    EVALUATION,
    LOADER_START,
    background_fix,
    is_rollout,
    kind_at,
    kind_of,
    subject,
)
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE, speedup
from strobe.advise.training import Array, Training
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "periodic-stall"

# An evaluation that takes at least a quarter of the time is more than training should bear.
SMALLEST_EVALUATION_SHARE = 0.25

# A stall is longer than the median step by this part of it, and by five standard deviations of the
# noise (1.4826 times the median absolute deviation estimates one). Shorter stalls that come every
# second step or less often cannot cost 5%.
STALL_RATIO = 0.1
STALL_DEVIATIONS = 5 * 1.4826
# Stalls inside the passes must also come at exact multiples of the period, and this part of them
# must be longest in the same part of the step: stalls of the machine are regular in time rather
# than in steps, and affect any part.
SAME_PART_RATIO = 0.8
# A busy machine regularly gives a core to another process for about this long.
STALL_NS = 3_000_000
# Passes compute, and a busy machine makes single ones longer, so stalls in them must be clear.
STALL_IN_PASSES_RATIO = 0.5
# If the training thread waits for a core for this part of the time, the threads that compute for it
# wait as well, which is not measured. Schedulers serve them in turns, as regularly as any stall.
CROWDED_RATIO = 0.2
# Stalls with one cause are of similar length: at least this part of the upper quartile.
ALIKE_RATIO = 0.3
# Loops that count from 0 in each epoch are slightly irregular, stalls of a machine very irregular.
REGULAR_RATIO = 0.25
# Some period fits any long steps a little. It must fit better than one in 500 would by chance.
MOST_CHANCE = 0.002
# This part of the largest share is as good as the largest.
NEARLY_RATIO = 0.8
# What is saved by work that is done ten times less often.
LESS_OFTEN_RATIO = 0.9
# Two stalls may be chance.
FEWEST_STALLS = 3

# What functions that evaluate a model are called.
_EVALUATES = re.compile(r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|generate)(_|$)")

_PARTS = ("gap", "forward", "backward", "all_reduce", "update", "rest")


class Stalls(NamedTuple):
    """Steps of a rank that are longer than the others, for one reason."""

    rank: int
    period: int
    steps: tuple[int, ...]  # their numbers
    excess_ns: int  # the sum of their time beyond the median step
    typical_ns: float  # the median length of the other steps
    code: RareCode | None = None  # code that only these steps run

    @property
    def is_regular(self) -> bool:
        """Stalls without such code were found by their distances. Of stalls with code, some may not
        have been sampled, so a distance of two periods counts as regular."""
        off = [min(n % self.period, -n % self.period) for n in np.diff(self.steps).tolist()]
        return self.code is None or max(off) <= 1 < self.period - 1

    @property
    def length_ns(self) -> float:
        """How much longer one of these steps takes, on average."""
        return self.excess_ns / len(self.steps)


def check(training: Training) -> Verdict:
    found = [
        stalls
        for rank in training.ranks
        for stalls in (_stalls(training, rank), _of_same_code(training, rank))
        if stalls is not None
    ]
    if not found:
        return Clear(message("periodic-stall.no-slow-steps"))
    # Distances show every stall, samples of code only those that they hit.
    found = [one for one in found if one.code is None] or found
    shares = [one.excess_ns / max(1, _total_ns(training, one)) for one in found]
    # Stalls with known code say more than those with known distances only.
    share, stalls = max(
        (one for one in zip(shares, found, strict=True) if one[0] >= NEARLY_RATIO * max(shares)),
        key=lambda one: (one[1].code is not None, one[0]),
    )
    is_evaluation, has_gradients = _evaluation(training, stalls)
    stalls, share = _with_waits(training, stalls) if is_evaluation else (stalls, share)
    values = {"period": count(stalls.period), "longer": duration(stalls.length_ns),
              "share": percent(share)}  # fmt: skip
    if stack_lines.compiled_ns(training, stalls.rank, {*stalls.steps}) >= 0.5 * stalls.excess_ns:
        return Clear(message("periodic-stall.compilation", **values))
    if is_rollout(training):
        return Clear(message("periodic-stall.rollout", **values))
    if is_evaluation and has_gradients:
        return Clear(message("periodic-stall.evaluation-with-gradients", **values))
    if is_evaluation and share < SMALLEST_EVALUATION_SHARE:
        return Clear(message("periodic-stall.small-evaluation", **values))
    if share < SMALLEST_SHARE:
        return Clear(message("periodic-stall.small", **values))
    kind, line = _work(training, stalls)
    kind = EVALUATION if is_evaluation else kind
    if kind == LOADER_START:
        return Clear(message("periodic-stall.loader-starts", **values))
    return _finding(training, stalls, share, kind, line)


def _evaluation(training: Training, stalls: Stalls) -> tuple[bool, bool]:
    """Whether the stalls are evaluations, and whether gradients are enabled in one."""
    evaluated = stack_lines.evaluated_ns(training, stalls.rank)
    inside = [evaluated[step] for step in stalls.steps if step in evaluated]
    evaluation_ns = sum(ns for ns, _ in inside)
    is_evaluation = evaluation_ns >= 0.5 * stalls.excess_ns or _is_called_evaluation(
        training, stalls
    )
    return is_evaluation, any(has_gradients for _, has_gradients in inside)


def _with_waits(training: Training, stalls: Stalls) -> tuple[Stalls, float]:
    """Evaluations with the waits for their own data, and their share of step time."""
    mine = training.steps["rank"] == stalls.rank
    whole = _own_ns(training, stalls)[mine].astype(float)
    is_stall = np.isin(training.steps["step"][mine], stalls.steps)
    others = whole[~is_stall] if not is_stall.all() else whole
    longer = (whole[is_stall] - np.median(others)).clip(0)
    stalls = stalls._replace(excess_ns=max(stalls.excess_ns, int(longer.sum())))
    return stalls, min(MOST_MEASURED, stalls.excess_ns / max(1, _total_ns(training, stalls)))


def _work(training: Training, stalls: Stalls) -> tuple[str | None, str | None]:
    """The kind of work in the stalls, and its line, as far as they are known."""
    if stalls.code:
        return kind_of(stalls.code.stacks), str(stalls.code.line)
    phases = _longer_phases(training, stalls)
    condition = (
        f"rank = {stalls.rank} AND step IN ({', '.join(map(str, stalls.steps))}) "
        f"AND phase IN ({', '.join(repr(name) for name in phases)})"
    )
    found = stack_lines.line_of(training, condition, into_modules="forward" in phases)
    return kind_at(training, condition), str(found) if found else None


def _finding(
    training: Training, stalls: Stalls, share: float, kind: str | None, line: str | None
) -> Finding:
    fixes = [_less_often(stalls, share, line)]
    saved = LESS_OFTEN_RATIO * share
    if in_background := background_fix(training, kind, line):
        fixes.insert(0, in_background)
        saved = share
    if kind == EVALUATION:
        fixes.append(fix("evaluate-less", training.framework))
    return Finding(
        title=_title(training, stalls, share, subject(kind, line)),
        why=message("periodic-stall.longer-than-others", longer=duration(stalls.length_ns)),
        share=share,
        expected_speedup=speedup(saved),
        fixes=tuple(fixes),
        evidence=(Evidence("steps", tuple(_rows(training, stalls))),),
        where=line,
    )


def _title(training: Training, stalls: Stalls, share: float, what: Message | None) -> Message:
    values = {"period": count(stalls.period), "share": percent(share)}
    if what is None:
        return message("periodic-stall.training-stalls", **values)
    if stalls.is_regular:
        return message("periodic-stall.stalls-at-period", what=what, **values)
    return message(
        "periodic-stall.stalls-at-times",
        what=what,
        stalled=count(len(stalls.steps)),
        steps=count(int((training.steps["rank"] == stalls.rank).sum())),
        share=percent(share),
    )


def _less_often(stalls: Stalls, share: float, line: str | None) -> Message:
    cost = percent(share / (10 - 9 * share))
    values = {"period": count(stalls.period), "tenfold": count(10 * stalls.period), "cost": cost}
    if line is None:
        return message("periodic-stall.do-less-often", **values)
    if stalls.is_regular:
        return message("periodic-stall.run-line-less-often", line=line, **values)
    return message("periodic-stall.run-line-ten-times-less-often", line=line, cost=cost)


def _of_same_code(training: Training, rank: int) -> Stalls | None:
    """Steps that are long because of the same line, which the other steps do not run."""
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
    """Whether a function that only these steps run is named so, where no hook marks evaluations."""
    code = stalls.code or rare_code(training, stalls.rank, stalls.typical_ns)
    if code is None or not {*code.steps} <= {*stalls.steps}:
        return False
    names = {name for stack in code.stacks for _, _, name in json.loads(stack)}
    return any(_EVALUATES.search(str(name)) for name in names)


def _has_its_own_time(training: Training, rank: int, code: RareCode) -> bool:
    """Whether most of its time is not time in which the thread waited for a core. On a busy machine
    any line may be interrupted, and threads that compute for it wait for cores as well."""
    mine = training.steps["rank"] == rank
    if training.no_core_ns[mine].sum() >= CROWDED_RATIO * training.steps["dur_ns"][mine].sum():
        return False
    no_core = dict(zip(training.steps["step"][mine].tolist(), training.no_core_ns[mine].tolist(),
                       strict=True))  # fmt: skip
    own_ns = code.length_ns - np.array([no_core.get(step, 0.0) for step in code.steps])
    return bool((own_ns >= 0.5 * code.length_ns).all())


def _stalls(training: Training, rank: int) -> Stalls | None:
    """Regular stalls between the parts of steps, which have no noise of computing; otherwise those
    that only the length of whole steps shows."""
    steps = training.steps
    mine = steps["rank"] == rank
    number = steps["step"][mine].astype(np.int64)
    column = {name: values[mine].astype(np.float64) for name, values in steps.items()}
    # The time in which others used the cores may be in any part of a step, and is not its own.
    no_core = training.no_core_ns[mine]
    whole = column["dur_ns"] - column["recorder_ns"] - column["data_ns"] - no_core
    # The part of it that every step has is in the passes, which all steps have.
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
    """The part of the stalls that are longest in the same part of the step."""
    is_stall = np.isin(number, stalls.steps)
    parts = np.stack([column[f"{name}_ns"] for name in _PARTS])
    longer = parts[:, is_stall] - np.median(parts[:, ~is_stall], axis=1, keepdims=True)
    return float(np.bincount(longer.argmax(axis=0)).max() / is_stall.sum())


def _regular(
    rank: int, number: Array, length: Array, least_ns: float, is_exact: bool = False
) -> Stalls | None:
    if len(number) < 2 * FEWEST_STALLS:
        return None
    # The median of the shorter half: if every second step is long, the median may be either.
    shorter = np.sort(length)[: len(length) // 2]
    base = float(np.median(shorter))
    noise = float(np.median(np.abs(shorter - base)))
    excess = length - base
    is_long = excess > max(least_ns, STALL_NS, STALL_DEVIATIONS * noise)
    if is_long.sum() < FEWEST_STALLS:
        return None
    # A stall of the machine among them is shorter than the periodic ones.
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
    """The probability that this many distances fit the period if steps were long at random.

    `ratio` is the part of steps that are long. A distance fits if it is off by at most `slack`
    steps; of all slacks, the one that is least likely to be chance counts.
    """
    chances = []
    for slack in slacks:
        # Steps that are not judged may hide a stall, so two periods fit as well as one.
        fits = np.array([
            min(distance % period, -distance % period) <= slack
            for distance in range(1, int(apart.max()) + 1)
        ])  # fmt: skip
        at_random = ratio * (1 - ratio) ** np.arange(len(fits))
        chance = float(at_random[fits].sum()) / max(1e-12, float(at_random.sum()))
        fitting = int(fits[apart - 1].sum())
        chances.append(_at_least(fitting, len(apart), chance))
    return min(1.0, len(slacks) * min(chances))


def _at_least(fewest: int, tries: int, chance: float) -> float:
    """The probability that at least this many of the tries succeed."""
    chance = min(max(chance, 1e-12), 1 - 1e-12)
    yes, no = math.log(chance), math.log(1 - chance)
    ways = (_log_ways(tries, k) + k * yes + (tries - k) * no for k in range(fewest, tries + 1))
    return min(1.0, sum(map(math.exp, ways)))


def _log_ways(tries: int, chosen: int) -> float:
    """The logarithm of the binomial coefficient, which itself would be too large."""
    return math.lgamma(tries + 1) - math.lgamma(chosen + 1) - math.lgamma(tries - chosen + 1)


def _total_ns(training: Training, stalls: Stalls) -> int:
    """All step time of the rank."""
    return int(_own_ns(training, stalls)[training.steps["rank"] == stalls.rank].sum())


def _own_ns(training: Training, stalls: Stalls) -> Array:
    """The length of each step; without the time in which others used the cores if the stalls
    exclude it."""
    own: Array = training.steps["dur_ns"] - training.steps["recorder_ns"]
    return own - training.no_core_ns if stalls.code is None else own


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
