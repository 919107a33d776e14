"""The first steps take far longer than the rest.

## What it is
A compiler builds the step (torch.compile, XLA), libraries try out their kernels, caches fill,
workers start. After that every step is quicker. It is paid once in each process, so it matters in a
training that is short or is started often.

## How it is judged
The steps at the beginning until three in a row are no longer than three times the typical step, if
they do something that later steps do not (or take more than twenty times as long). Their length
beyond the typical step is the cost, as part of all the training that was recorded. It is told of
from 5 % on, if it takes at least two seconds: less is the usual start of any process. That
torch.compile takes its time is expected: it is told as a warning, unless it takes longer than all
the training after it.

## How to fix
Compile less: one region instead of many, `dynamic=True` where shapes change, a cache that outlives
the process (`TORCHINDUCTOR_CACHE_DIR` on a disk that stays). Or train longer in one process.
"""

import numpy as np

from strobe.advise import seen
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.framework import JAX, MINDSPORE, TORCH
from strobe.advise.training import Array, Training
from strobe.analyse import python_lines
from strobe.analyse.steps import WARM_UP_STEPS
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
# they must be so many times longer that no machine does it.
OTHER_CODE_RATIO = 0.5
MANY_TIMES = 20
# A compiler that takes longer than all the training after it cannot pay off: the steps it spares
# would have to take twice as long without it.
IN_VAIN_RATIO = 0.5
# A training whose steps are still settling at its middle has none that are usual.
LONGEST_RATIO = 0.5

COMPILES, XLA_COMPILES = "torch.compile compiles", "XLA compiles (jax.jit)"
MINDSPORE_COMPILES = "MindSpore compiles its graphs"
COMPILER = "a compiler builds the step"
COMPILERS = {TORCH: COMPILES, JAX: XLA_COMPILES, MINDSPORE: MINDSPORE_COMPILES}

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


def check(training: Training) -> Verdict:
    rank, cost_ns, count, total_ns = max(
        (_of_rank(training, rank) for rank in training.ranks), key=lambda row: row[1]
    )
    share = cost_ns / max(1, total_ns)
    if not count:
        return Clear("the first steps are like the others")
    first = "the first step takes" if count == 1 else f"the first {count} steps take"
    told = f"{first} {duration(cost_ns)} more than later ones"
    if share < WORTH_TELLING_RATIO or cost_ns < WORTH_TELLING_NS:
        return Clear(f"{told}, {percent(share)} of what was recorded")
    condition = f"rank = {rank} AND step <= {count}"
    if not _is_of_its_own(training, rank, count, cost_ns / count):
        return Clear(f"{told}, {percent(share)}, but do the same: the machine was busy")
    found = seen.line_of(training, condition)
    cause = _cause(training, condition)
    is_compiled = seen.compiled_ns(training, rank, range(1, count + 1)) >= 0.5 * cost_ns
    compilers = {*COMPILERS.values(), COMPILER}
    if is_compiled and cause not in compilers:
        cause = COMPILERS.get(training.framework, COMPILER)
    if cause in compilers and count > WARM_UP_STEPS:
        return Clear(f"{told}: {cause} again and again, which is recompilation")
    where = str(found) if found else None
    because = f": {cause}" if cause else ""
    is_worth_it = cause in compilers and share < IN_VAIN_RATIO
    return Finding(
        title=f"{told}{because}, {percent(share)} of all the training recorded",
        share=0.0 if is_worth_it else share,
        expected_speedup=1.0 if is_worth_it else 1 / (1 - share),
        fixes=_fixes(training, cause, where),
        evidence=(Evidence("steps", tuple(_rows(training, rank, count))),),
        where=where,
        is_warning=is_worth_it,
    )


def _fixes(training: Training, cause: str | None, where: str | None) -> tuple[str, ...]:
    names = _FIXES.get(cause or "", ())
    return tuple(fix(name, training.framework) for name in names) or (_general(where),)


def _general(where: str | None) -> str:
    at = f" at {where}" if where else ""
    return f"do what the first steps do{at} once, before training, and keep its result on disk"


def _of_rank(training: Training, rank: int) -> tuple[int, int, int, int]:
    """Rank, cost, number of steps that warm up, and the length of all steps."""
    steps = training.run.sql(
        "SELECT ts_ns, ts_ns + dur_ns AS end_ns, dur_ns - recorder_ns AS ns FROM step_times "
        f"WHERE rank = {rank} ORDER BY step"
    ).fetchnumpy()
    no_core = training.no_core_between(
        rank, np.asarray(steps["ts_ns"]), np.asarray(steps["end_ns"])
    )
    length = (np.asarray(steps["ns"], dtype=np.float64) - no_core).clip(0)
    total_ns = int(length.sum())
    if len(length) < FEWEST_STEPS:
        return rank, 0, 0, total_ns
    count = _settled_after(length, training.typical_ns)
    if count > LONGEST_RATIO * len(length):
        return rank, 0, 0, total_ns
    cost_ns = int((length[:count] - training.typical_ns).clip(0).sum())
    return rank, cost_ns, count, total_ns


def _settled_after(length: Array, typical_ns: float) -> int:
    is_usual = length <= SETTLED_RATIO * typical_ns
    in_a_row = np.convolve(is_usual, np.ones(SETTLED_STEPS), mode="valid")
    settled = np.flatnonzero(in_a_row >= SETTLED_STEPS - 0.5)
    return int(settled[0]) if len(settled) else len(length)


def _cause(training: Training, condition: str) -> str | None:
    rows = training.rows(f"""
        SELECT stack, sum(dur_ns)::BIGINT AS dur_ns FROM sample_times WHERE {condition}
        GROUP BY stack
    """)
    total_ns = sum(row["dur_ns"] for row in rows)
    for cause, signs in _SIGNS.items():
        matching = (row for row in rows if any(sign in row["stack"] for sign in signs))
        if total_ns and sum(row["dur_ns"] for row in matching) >= 0.5 * total_ns:
            return cause
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
