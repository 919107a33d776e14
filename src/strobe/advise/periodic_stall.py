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
`gradients-in-evaluation`.

## How to fix
Do it less often; the cost falls with it. A checkpoint can be written while training goes on: copy
the state, then save the copy in a thread. Evaluate on a part of the data, without gradients, in
larger batches. Draw and log from values that were kept, at the end.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from strobe.advise import seen
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Array, Training
from strobe.model.schema import EVALUATION, EVALUATION_WITH_GRADIENTS
from strobe.units import duration, percent

NAME = "periodic-stall"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05
# A quarter of the time for judging a model is more than its training can be expected to bear.
TOO_MUCH_EVALUATION_RATIO = 0.25

# A stall takes this much of the median step more, and five standard deviations of their noise
# (1.4826 times the median absolute deviation estimates one). Less costs 5 % in no case that comes
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
# Two may be chance.
FEWEST_STALLS = 3

LOADER_START = "the start of a data loader"

# What a stall is, by a part of a file's path or a function's name in the stacks that were seen.
_SIGNS = {
    "a checkpoint": (
        "torch/serialization.py",
        "mindspore/train/serialization.py",
        "pickle.py",
        "safetensors",
        "checkpoint",
        "orbax",
    ),
    "a plot": ("matplotlib", "plotly", "seaborn"),
    "logging": ("tensorboard", "wandb", "mlflow", "logging/__init__.py"),
    LOADER_START: ("torch/utils/data/", "multiprocessing/popen"),
}
_ASYNCHRONOUSLY = {
    "torch": "save a copy in a thread: state = copy.deepcopy(model.state_dict()); "
    "threading.Thread(target=torch.save, args=(state, path)).start()",
    "jax": "save in the background: orbax.checkpoint.AsyncCheckpointer; or take a copy with "
    "jax.device_get(state) and write it in a thread",
    "mindspore": "save in the background: mindspore.save_checkpoint(net, path, async_save=True), "
    "CheckpointConfig(async_save=True)",
}
_ASYNCHRONOUSLY = {
    "a plot": "draw after training, or in another process, from values that were kept",
    "logging": "hand the values to a thread that writes them",
}


_PARTS = ("gap", "forward", "backward", "all_reduce", "update", "rest")


class Stalls(NamedTuple):
    """Steps of a rank that are long at regular distances."""

    rank: int
    period: int
    steps: tuple[int, ...]  # their numbers
    excess_ns: int  # what they take beyond the median step, together
    typical_ns: float  # of the other steps


def check(training: Training) -> Verdict:
    found = [stalls for rank in training.ranks if (stalls := _stalls(training, rank)) is not None]
    if not found:
        return Clear("no step is long at regular distances")
    stalls = max(found, key=lambda one: one.excess_ns)
    total_ns = _total_ns(training, stalls.rank)
    share = stalls.excess_ns / max(1, total_ns)
    length_ns = stalls.excess_ns / len(stalls.steps)
    told = f"every {stalls.period} steps one takes {duration(length_ns)} longer, {percent(share)}"
    if seen.compiled_ns(training, stalls.rank, set(stalls.steps)) >= 0.5 * stalls.excess_ns:
        return Clear(f"{told}: something is compiled, which is recompilation")
    evaluation_ns, has_gradients = _evaluated_ns(training, stalls)
    is_evaluation = evaluation_ns >= 0.5 * stalls.excess_ns
    if is_evaluation and has_gradients:
        return Clear(f"{told}: an evaluation, which first of all runs with gradients enabled")
    least = TOO_MUCH_EVALUATION_RATIO if is_evaluation else WORTH_TELLING_RATIO
    if share < least:
        return Clear(told + (": an evaluation" if is_evaluation else ""))
    phases = _longer_phases(training, stalls)
    condition = (
        f"rank = {stalls.rank} AND step IN ({', '.join(map(str, stalls.steps))}) "
        f"AND phase IN ({', '.join(repr(name) for name in phases)})"
    )
    line = seen.line_of(training, condition, into_modules="forward" in phases)
    what = "an evaluation" if is_evaluation else _kind(training, condition)
    if what == LOADER_START:
        return Clear(f"{told}: {what}, which is data-starvation")
    return _finding(training, stalls, share, what, str(line) if line else None)


def _finding(
    training: Training, stalls: Stalls, share: float, what: str | None, where: str | None
) -> Finding:
    length_ns = stalls.excess_ns / len(stalls.steps)
    at = f" at {where}" if where else ""
    name = (what or "something") + at
    rarer = 10 * stalls.period
    fixes = [
        f"do it{at} every {rarer} steps instead of every {stalls.period}: "
        f"it then costs {percent(share / (10 - 9 * share))}"
    ]
    beside = {**_ASYNCHRONOUSLY, "a checkpoint": fix("save-in-background", training.framework)}
    if what in beside:
        fixes.insert(0, beside[what] + (f" ({where})" if where else ""))
    if what == "an evaluation":
        fixes.append(fix("evaluate-less", training.framework))
    return Finding(
        title=f"{name} holds training up every {stalls.period} steps for {duration(length_ns)}, "
        f"{percent(share)} of all step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=tuple(fixes),
        evidence=(Evidence("steps", tuple(_rows(training, stalls))),),
        where=where,
    )


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


def _total_ns(training: Training, rank: int) -> int:
    """Less what others took of the cores, as it is left out of the stalls."""
    steps = training.steps
    mine = steps["rank"] == rank
    own = steps["dur_ns"] - steps["recorder_ns"] - training.no_core_ns
    return int(own[mine].sum())


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


def _evaluated_ns(training: Training, stalls: Stalls) -> tuple[int, bool]:
    """How long the evaluations in the stalls take, from the first forward pass of each to its
    last; and whether gradients were on."""
    rows = training.rows(
        """
        SELECT s.step, max(o.end_ns) - min(o.ts_ns) AS dur_ns,
               bool_or(o.name = $with_gradients) AS has_gradients
        FROM outline o ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'annotation' AND o.name IN ($evaluation, $with_gradients)
          AND o.rank = $rank
        GROUP BY s.step
        """,
        {
            "rank": stalls.rank,
            "evaluation": EVALUATION,
            "with_gradients": EVALUATION_WITH_GRADIENTS,
        },
    )
    inside = [row for row in rows if row["step"] in set(stalls.steps)]
    return sum(row["dur_ns"] for row in inside), any(row["has_gradients"] for row in inside)


def _kind(training: Training, condition: str) -> str | None:
    """What a stall is by the stacks that were seen in it."""
    rows = training.rows(f"""
        SELECT stack, sum(dur_ns)::BIGINT AS dur_ns FROM sample_times WHERE {condition}
        GROUP BY stack
    """)
    total_ns = sum(row["dur_ns"] for row in rows)
    for what, signs in _SIGNS.items():
        matching = sum(row["dur_ns"] for row in rows if any(sign in row["stack"] for sign in signs))
        if total_ns and matching >= 0.5 * total_ns:
            return what
    return None


def _rows(training: Training, stalls: Stalls) -> list[dict[str, Any]]:
    numbers = ", ".join(map(str, stalls.steps[:8]))
    return training.rows(f"""
        SELECT rank, step, dur_ns, gap_ns, forward_ns, backward_ns, update_ns, rest_ns, data_ns
        FROM step_times WHERE rank = {stalls.rank} AND step IN ({numbers}) ORDER BY step
    """)
