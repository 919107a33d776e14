"""The first steps are far slower than the rest.

## What it is
In the first steps, a compiler builds the step (torch.compile, XLA), libraries try out kernels,
caches fill, and data workers start. Later steps are faster. The time is paid once in each process,
so it matters for training that is short or that is started often.

## How it is judged
Strobe looks at the first steps that take more than three times as long as the median step, until
steps settle. The cost is their time beyond the median, without evaluations. The first steps must
run other code than later steps, or take longer than a busy machine can explain. Work that the
script does between the first steps (an evaluation, a first sample) is not warm-up and is not
reported.

Fixing warm-up saves time once at each start and makes no step faster. The finding is therefore a
warning that shows the time saved per start.

## How to fix
Cache what the compiler built (`TORCHINDUCTOR_CACHE_DIR`, `jax_compilation_cache_dir`,
`MS_COMPILER_CACHE_ENABLE=1`), so that the next start reuses it. Prepare data once before training,
and cache it on disk. Do not use a compiler for a short run.
"""

from typing import NamedTuple

import numpy as np

from strobe.advise.evidence import stack_lines
from strobe.advise.finding import Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line, fix
from strobe.advise.thresholds import SMALLEST_SHARE
from strobe.advise.training import Array, Training
from strobe.analyse.tables.steps import python_lines
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.frameworks import FRAMEWORKS
from strobe.messages import Message, message
from strobe.units import count, duration, percent

NAME = "warm-up"

# First allocations, threads and files take up to a second in any process.
SMALLEST_NS = 2_000_000_000
# Fewer steps do not show how long a typical one is.
FEWEST_STEPS = 10
# Warm-up is over after this many steps in a row that take no longer than this many typical steps. A
# busy machine makes a step two or three times as long.
SETTLED_STEPS = 3
SETTLED_RATIO = 3.0
# The first steps must run code that later steps do not run for this part of their time, or each
# must take longer than this many typical steps, which no busy machine explains.
OTHER_CODE_RATIO = 0.5
MANY_TIMES = 20
# A compiler that takes longer than all steps after it does not pay off in so short a run.
USELESS_COMPILER_SHARE = 0.5
# A cause must explain this part of the time.
MOSTLY_RATIO = 0.5
# A training whose steps still settle at this part of it has no typical step.
LONGEST_RATIO = 0.5

# Causes, each the id of its message.
COMPILER = "warm-up.compiler"
IMPORTS = "warm-up.imports"
WORKERS = "warm-up.workers"

_COMPILERS = tuple(one.compiler for one in FRAMEWORKS if one.compiler)
_COMPILING = {COMPILER, *(compiler.message for compiler in _COMPILERS)}
_OPTIONAL = {compiler.message for compiler in _COMPILERS if compiler.is_optional}

# Causes by parts of file paths in stacks that were sampled in the first steps.
_PATHS = {
    **{compiler.message: compiler.paths for compiler in _COMPILERS},
    IMPORTS: ("importlib._bootstrap",),
    WORKERS: ("multiprocessing/popen",),
}


class WarmUp(NamedTuple):
    """The first steps of a rank, and the time that they take beyond later ones."""

    rank: int = 0
    steps: int = 0
    cost_ns: int = 0
    total_ns: int = 0  # of all steps
    evaluation_ns: int = 0  # not counted in the first steps


def check(training: Training) -> Verdict:
    warm_up = max((_of_rank(training, rank) for rank in training.ranks), key=lambda w: w.cost_ns)
    rank, steps, cost_ns, _, evaluation_ns = warm_up
    share = cost_ns / max(1, warm_up.total_ns)
    if not steps:
        has_evaluation = evaluation_ns >= SMALLEST_NS
        id = "warm-up.none-but-evaluation" if has_evaluation else "warm-up.none"
        return Clear(message(id))
    values = {"count": count(steps), "longer": duration(cost_ns), "share": percent(share)}
    if share < SMALLEST_SHARE or cost_ns < SMALLEST_NS:
        return Clear(message(_id("warm-up.small", steps), **values))
    if not _runs_other_code(training, rank, steps, cost_ns / steps):
        return Clear(message(_id("warm-up.same-code", steps), **values))
    cause = _cause(training, warm_up)
    if cause in _COMPILING and steps > WARM_UP_STEPS:
        return Clear(message("warm-up.keeps-compiling", **values))
    found = stack_lines.line_of(training, f"rank = {rank} AND step <= {steps}")
    where = str(found) if found else None
    if cause is None and _is_between_steps(training, warm_up):
        return Clear(message(_id("warm-up.other-work", steps), at=at_line(where), **values))
    return Finding(
        title=message(_id("warm-up.title", steps), **values),
        share=0.0,
        expected_speedup=1.0,
        fixes=_fixes(training, cause, where, share),
        evidence=(Evidence("steps", tuple(_rows(training, rank, steps))),),
        where=where,
        is_certain=cause is not None,
        is_warning=True,
        saves_at_start_ns=cost_ns,
        why=_why(training, cause, where),
    )


def _id(id: str, steps: int) -> str:
    return f"{id}-one-step" if steps == 1 else id


def _why(training: Training, cause: str | None, where: str | None) -> Message:
    id = cause or ("warm-up.seen-at" if where else "warm-up.unknown-cause")
    return message(id, typical=duration(training.typical_ns), line=where or "")


def _fixes(
    training: Training, cause: str | None, where: str | None, share: float
) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    if cause in _COMPILING:
        names = ("cache-compiled", "compile-less")
    if cause in _OPTIONAL and share >= USELESS_COMPILER_SHARE:
        names = (*names, "skip-compiler")
    if cause == WORKERS:
        names = ("keep-workers",)
    if not names:
        return (message("warm-up.do-it-once", at=at_line(where)),)
    return tuple(fix(name, training.framework) for name in names)


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
    first = _settled_after(length, training.typical_ns)
    early_ns = int(evaluation_ns[: max(first, WARM_UP_STEPS)].sum())
    if first > LONGEST_RATIO * len(length):
        return WarmUp(rank, total_ns=total_ns, evaluation_ns=early_ns)
    cost_ns = int((length[:first] - training.typical_ns).clip(0).sum())
    return WarmUp(rank, first, cost_ns, total_ns, early_ns)


def _is_between_steps(training: Training, warm_up: WarmUp) -> bool:
    """Whether most of the time is between the parts of steps and is not a wait for data: there, the
    script does something else and prepares nothing for a step."""
    (row,) = training.rows(f"""
        SELECT sum(gap_ns - data_ns + rest_ns) FILTER (step <= {warm_up.steps})
               - {warm_up.steps} * median(gap_ns - data_ns + rest_ns) AS between_ns
        FROM step_times WHERE rank = {warm_up.rank}
    """)
    longer_ns = float(row["between_ns"] or 0) - warm_up.evaluation_ns
    return longer_ns >= MOSTLY_RATIO * warm_up.cost_ns


def _settled_after(length: Array, typical_ns: float) -> int:
    """The number of steps before the first typical ones; all, if there are no typical ones."""
    is_typical = length <= SETTLED_RATIO * typical_ns
    in_a_row = np.convolve(is_typical, np.ones(SETTLED_STEPS), mode="valid")
    settled = np.flatnonzero(in_a_row >= SETTLED_STEPS - 0.5)
    return int(settled[0]) if len(settled) else len(length)


def _cause(training: Training, warm_up: WarmUp) -> str | None:
    """The id of its message, or None if the cause is unknown."""
    python_lines.prepare(training.run)
    rows = training.rows(f"""
        SELECT stack, sum(dur_ns)::BIGINT AS dur_ns FROM sample_times
        WHERE rank = {warm_up.rank} AND step <= {warm_up.steps} GROUP BY stack
    """)
    total_ns = sum(row["dur_ns"] for row in rows)
    for cause, paths in _PATHS.items():
        matching = (row for row in rows if any(path in row["stack"] for path in paths))
        if total_ns and sum(row["dur_ns"] for row in matching) >= MOSTLY_RATIO * total_ns:
            return cause
    compiled_ns = stack_lines.compiled_ns(training, warm_up.rank, range(1, warm_up.steps + 1))
    if compiled_ns >= MOSTLY_RATIO * warm_up.cost_ns:
        compiler = training.framework.compiler
        return compiler.message if compiler else COMPILER
    return None


def _runs_other_code(training: Training, rank: int, steps: int, longer_ns: float) -> bool:
    """Whether most of the first steps is spent in code that later steps do not run, or each is so
    much longer that it must be."""
    if longer_ns >= MANY_TIMES * training.typical_ns:
        return True
    python_lines.prepare(training.run)
    rows = training.rows(f"""
        WITH of_rank AS (SELECT below, step <= {steps} AS is_first, dur_ns FROM sample_times
                         WHERE rank = {rank})
        SELECT sum(dur_ns)::BIGINT AS total_ns,
               sum(dur_ns) FILTER (below NOT IN (SELECT below FROM of_rank WHERE NOT is_first))
                   ::BIGINT AS other_ns
        FROM of_rank WHERE is_first
    """)
    total_ns, other_ns = rows[0]["total_ns"] or 0, rows[0]["other_ns"] or 0
    return bool(total_ns) and other_ns >= OTHER_CODE_RATIO * total_ns


def _rows(training: Training, rank: int, steps: int) -> list[dict[str, object]]:
    return training.rows(f"""
        SELECT rank, step, dur_ns, gap_ns, forward_ns, backward_ns, update_ns, rest_ns
        FROM step_times WHERE rank = {rank} AND step <= {min(steps, 10)} ORDER BY step
    """)
