"""The first steps take far longer than the rest.

## What it is
A compiler builds the step (torch.compile, XLA), libraries try out their kernels, caches fill,
workers start. After that every step is quicker. It is paid once in each process, so it matters in a
training that is short or is started often.

## How it is judged
The first steps that take more than three times as long as the median one, up to where they settle.
What they take beyond it is the cost, evaluations aside. They must run other code than later steps
do, or be longer than any busy machine explains. Work of the script between the
first steps (an evaluation, a first sample) is not warm-up, and is not reported. Fixing warm-up
saves time once at each start and makes no step faster, so it is a warning, with the time that it
saves.

## How to fix
Keep what the compiler made (`TORCHINDUCTOR_CACHE_DIR`, `jax_compilation_cache_dir`,
`MS_COMPILER_CACHE_ENABLE=1`), so that the next start finds it. Prepare data once, before training,
and keep it on disk. In a short run, leave the compiler out.
"""

from typing import NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.framework import JAX, MINDSPORE, TORCH
from strobe.advise.training import Array, Training
from strobe.analyse.tables.steps import python_lines
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.units import duration, percent

NAME = "warm-up"

# Below this share of all the training, it is not worth a person's time.
WORTH_TELLING_RATIO = 0.05
# First allocations, threads and files take up to a second in any process.
WORTH_TELLING_NS = 2_000_000_000
# Fewer steps do not show what a usual one is.
FEWEST_STEPS = 10
# Warm-up is over when so many steps in a row are no longer than this many typical ones: a busy
# machine makes a step two or three times as long.
SETTLED_STEPS = 3
SETTLED_RATIO = 3.0
# What the first steps do must be something else than later ones do, for so much of the time; or
# they must be longer than any busy machine explains.
OTHER_CODE_RATIO = 0.5
MANY_TIMES = 20
# A compiler that takes longer than all steps after it does not pay off in so short a run.
IN_VAIN_RATIO = 0.5
# A cause must explain this part of it.
MOSTLY_RATIO = 0.5
# A training whose steps are still settling at its middle has none that are usual.
LONGEST_RATIO = 0.5

COMPILES, XLA_COMPILES = "torch.compile compiles", "XLA compiles (jax.jit)"
MINDSPORE_COMPILES = "MindSpore compiles its graphs"
COMPILER = "a compiler builds the step"
COMPILERS = {TORCH: COMPILES, JAX: XLA_COMPILES, MINDSPORE: MINDSPORE_COMPILES}

_COMPILING = {*COMPILERS.values(), COMPILER}

# By a part of a file's path in the stacks that were seen in the first steps.
_SIGNS = {
    COMPILES: ("torch/_dynamo", "torch/_inductor", "triton/compiler"),
    XLA_COMPILES: ("jax/_src/compiler.py", "jax/_src/interpreters/", "jax/_src/pjit.py"),
    MINDSPORE_COMPILES: ("mindspore/graph/api.py", "mindspore/common/api.py"),
    "modules are imported": ("importlib._bootstrap",),
    "data workers start": ("multiprocessing/popen",),
}
# Fixes by cause, as they are called in the catalogue.
_FIXES = {
    COMPILES: ("cache-compiled", "compile-less"),
    XLA_COMPILES: ("cache-compiled", "compile-less"),
    MINDSPORE_COMPILES: ("cache-compiled", "compile-less"),
    COMPILER: ("cache-compiled", "compile-less"),
    "data workers start": ("keep-workers",),
}


class WarmUp(NamedTuple):
    """The first steps of a rank, and what they take beyond later ones."""

    rank: int = 0
    steps: int = 0
    cost_ns: int = 0
    total_ns: int = 0  # of all steps
    evaluation_ns: int = 0  # left out of the first steps


def check(training: Training) -> Verdict:
    warm_up = max((_of_rank(training, rank) for rank in training.ranks), key=lambda w: w.cost_ns)
    rank, count, cost_ns, _, evaluation_ns = warm_up
    share = cost_ns / max(1, warm_up.total_ns)
    if not count:
        after = " but for an evaluation" if evaluation_ns >= WORTH_TELLING_NS else ""
        return Clear(f"the first steps are like the others{after}")
    first = "the first step takes" if count == 1 else f"the first {count} steps take"
    told = f"{first} {duration(cost_ns)} longer than later ones"
    if share < WORTH_TELLING_RATIO or cost_ns < WORTH_TELLING_NS:
        return Clear(f"{told}, {percent(share)} of the recorded time")
    condition = f"rank = {rank} AND step <= {count}"
    if not _is_of_its_own(training, rank, count, cost_ns / count):
        return Clear(f"{told}, {percent(share)}, but run the same code: the machine was busy")
    cause = _cause(training, warm_up)
    if cause in _COMPILING and count > WARM_UP_STEPS:
        return Clear(f"{told}: {cause} again and again, which is recompilation")
    found = stack_lines.line_of(training, condition)
    where = str(found) if found else None
    if cause is None and _is_between_steps(training, warm_up):
        at = f" at {where}" if where else ""
        return Clear(f"{told}: other work of the script{at}, between the steps")
    because = f": {cause}" if cause else ""
    return Finding(
        title=f"{told}, {percent(share)} of the recorded time{because}",
        share=0.0,
        expected_speedup=1.0,
        fixes=_fixes(training, cause, where, share),
        evidence=(Evidence("steps", tuple(_rows(training, rank, count))),),
        where=where,
        is_certain=cause is not None,
        is_warning=True,
        saves_at_start_ns=cost_ns,
    )


def _fixes(
    training: Training, cause: str | None, where: str | None, share: float
) -> tuple[str, ...]:
    names = _FIXES.get(cause or "", ())
    if cause == COMPILES and share >= IN_VAIN_RATIO:
        names = (*names, "skip-compiler")
    return tuple(fix(name, training.framework) for name in names) or (_general(where),)


def _general(where: str | None) -> str:
    at = f" at {where}" if where else ""
    return f"do what the first steps do{at} once, before training, and keep its result on disk"


def _of_rank(training: Training, rank: int) -> WarmUp:
    steps = training.run.sql(
        "SELECT step, ts_ns, ts_ns + dur_ns AS end_ns, dur_ns - recorder_ns AS ns FROM step_times "
        f"WHERE rank = {rank} ORDER BY step"
    ).fetchnumpy()
    no_core = training.no_core_between(
        rank, np.asarray(steps["ts_ns"]), np.asarray(steps["end_ns"])
    )
    whole = (np.asarray(steps["ns"], dtype=np.float64) - no_core).clip(0)
    total_ns = int(whole.sum())
    if len(whole) < FEWEST_STEPS:
        return WarmUp(rank, total_ns=total_ns)
    evaluated = stack_lines.evaluated_ns(training, rank)
    evaluation_ns = np.array(
        [evaluated.get(step, (0, False))[0] for step in steps["step"].tolist()]
    )
    length = (whole - evaluation_ns).clip(0)
    count = _settled_after(length, training.typical_ns)
    early = int(evaluation_ns[: max(count, WARM_UP_STEPS)].sum())
    if count > LONGEST_RATIO * len(length):
        return WarmUp(rank, total_ns=total_ns, evaluation_ns=early)
    cost_ns = int((length[:count] - training.typical_ns).clip(0).sum())
    return WarmUp(rank, count, cost_ns, total_ns, early)


def _is_between_steps(training: Training, warm_up: WarmUp) -> bool:
    """Whether most of it lies between the parts of steps, and is not a wait for data: there the
    script does something else, and nothing of a step is made ready."""
    (row,) = training.rows(f"""
        SELECT sum(gap_ns - data_ns + rest_ns) FILTER (step <= {warm_up.steps})
               - {warm_up.steps} * median(gap_ns - data_ns + rest_ns) AS between_ns
        FROM step_times WHERE rank = {warm_up.rank}
    """)
    longer_ns = float(row["between_ns"] or 0) - warm_up.evaluation_ns
    return longer_ns >= MOSTLY_RATIO * warm_up.cost_ns


def _settled_after(length: Array, typical_ns: float) -> int:
    is_usual = length <= SETTLED_RATIO * typical_ns
    in_a_row = np.convolve(is_usual, np.ones(SETTLED_STEPS), mode="valid")
    settled = np.flatnonzero(in_a_row >= SETTLED_STEPS - 0.5)
    return int(settled[0]) if len(settled) else len(length)


def _cause(training: Training, warm_up: WarmUp) -> str | None:
    python_lines.prepare(training.run)
    rows = training.rows(f"""
        SELECT stack, sum(dur_ns)::BIGINT AS dur_ns FROM sample_times
        WHERE rank = {warm_up.rank} AND step <= {warm_up.steps} GROUP BY stack
    """)
    total_ns = sum(row["dur_ns"] for row in rows)
    for cause, signs in _SIGNS.items():
        matching = (row for row in rows if any(sign in row["stack"] for sign in signs))
        if total_ns and sum(row["dur_ns"] for row in matching) >= MOSTLY_RATIO * total_ns:
            return cause
    compiled_ns = stack_lines.compiled_ns(training, warm_up.rank, range(1, warm_up.steps + 1))
    if compiled_ns >= MOSTLY_RATIO * warm_up.cost_ns:
        return COMPILERS.get(training.framework, COMPILER)
    return None


def _is_of_its_own(training: Training, rank: int, count: int, longer_ns: float) -> bool:
    """Whether most of the first steps was spent in code that later steps do not run."""
    if longer_ns >= MANY_TIMES * training.typical_ns:
        return True
    python_lines.prepare(training.run)
    rows = training.rows(f"""
        WITH looks AS (SELECT below, step <= {count} AS is_first, dur_ns FROM sample_times
                       WHERE rank = {rank})
        SELECT sum(dur_ns)::BIGINT AS total_ns,
               sum(dur_ns) FILTER (below NOT IN (SELECT below FROM looks WHERE NOT is_first))
                   ::BIGINT AS other_ns
        FROM looks WHERE is_first
    """)
    total_ns, other_ns = rows[0]["total_ns"] or 0, rows[0]["other_ns"] or 0
    return bool(total_ns) and other_ns >= OTHER_CODE_RATIO * total_ns


def _rows(training: Training, rank: int, count: int) -> list[dict[str, object]]:
    return training.rows(f"""
        SELECT rank, step, dur_ns, gap_ns, forward_ns, backward_ns, update_ns, rest_ns
        FROM step_times WHERE rank = {rank} AND step <= {min(count, 10)} ORDER BY step
    """)
