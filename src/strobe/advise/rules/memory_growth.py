"""Memory grows with every step.

## What it is
Something from each step is never freed: the loss as a tensor (`total += loss` keeps the whole graph
of every step, `total += loss.item()` only a number), outputs that are collected in a list, or a
cache without a limit. In the end, the process is killed for lack of memory.

## How it is judged
Strobe measures the private memory of the process (RSS without shared pages) twice per second. It
ignores the first fifth of the run, in which memory is first allocated, and the memory that its own
windows of full recording used. The rest of the run is divided into eight parts of equally many
steps. Memory keeps growing if all of this is true:

- The smallest value of each part is larger than that of the part before, with one exception at
  most.
- Memory grows by at least 10% and by at least 32 MiB in all.
- It grows in the second half at least 75% as fast as in the first. If growth slows down more, an
  allocator is settling.

If this part of the run has fewer than 60 steps, or if more than 30% of the steps are recorded in
full, Strobe cannot tell.

The finding is a warning unless measurements show that fresh memory costs time: page faults that the
system spends time on, or steps that get longer because of system time. Longer steps alone are not
evidence.

## How to fix
Keep numbers instead of tensors (`.item()`, `.detach()`), limit the size of caches, and clear what
you collect once it is written.
"""

from typing import NamedTuple

import numpy as np

from strobe.advise.evidence.trend import slope
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE, speedup
from strobe.advise.training import Array, Training
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.frameworks import Framework
from strobe.messages import Message, message
from strobe.units import count, duration, percent, size

NAME = "memory-growth"

# In the first part of a run, the process allocates memory that it reuses later.
SETTLING_RATIO = 0.2
# Fewer values do not show whether growth continues in each part.
FEWEST_VALUES = 8
# Allocators settle within tens of steps.
FEWEST_STEPS = 60
# The values of a long run are reduced to this many, because every pair of them is compared.
MOST_VALUES = 120
# Allocators and caches of a healthy training grow by less.
LEAST_GROWTH_RATIO = 0.1
LEAST_GROWTH_BYTES = 32 << 20
# Memory keeps growing if the minimum of each part of the steps is larger than that of the part
# before, with one exception, and the second half grows by this part of the growth of the first.
PARTS = 8
MOST_FALLING = 1
STEADY_RATIO = 0.75
# With fewer values per part, a minimum may be chance: then memory must never have dropped by more
# than this part of its growth.
FEWEST_OF_PART = 4
MOST_DROPPED_RATIO = 0.2
# A window of full recording has used all of its memory after this many times its length. If a
# larger part of the steps is recorded in full, the growth may be the recorder's.
WINDOW_LENGTHS = 2
MOST_RECORDED_RATIO = 0.3
# The part of system time in a training that needs no fresh memory, and the largest part that is
# believed, because several threads can fault pages in at once.
USUAL_SYSTEM_RATIO = 0.02
MOST_SYSTEM_RATIO = 0.6
# What the system needs to find, clear and map a page: in `benchmarks.zoo`, two trainings with and
# without their growth differ by 0.7 and 1.4 us per page that they keep.
FAULT_NS = 1_500
PAGE_BYTES = 4096
# Steps get longer if the last quarter takes this much longer than the first, and each quarter takes
# longer than the one before.
SLOWER_RATIO = 1.15
# At least this part of the additional time must be system time: the rest may be more work per step.
SYSTEM_OF_SLOWER_RATIO = 0.25
# The estimate for the very first step is at least this part of the shortest step, because a line
# through noise may begin below zero.
LEAST_BEGIN_RATIO = 0.5

_COUNTER = "rss_private_bytes"


class Growth(NamedTuple):
    rank: int
    bytes_per_step: float
    bytes_per_ns: float
    grown_bytes: int
    steps: float  # in which it was measured
    ns_until_full: float | None


def check(training: Training) -> Verdict:
    times = training.run.sql(
        "SELECT rank, min(ts_ns), max(ts_ns + dur_ns) FROM step_times GROUP BY rank ORDER BY rank"
    ).fetchall()
    judged = {*training.ranks}
    values = [
        (rank, *_memory(training, rank, *between)) for rank, *between in times if rank in judged
    ]
    if all(len(ts_ns) < FEWEST_VALUES for _, ts_ns, _ in values):
        return CannotTell(
            message("memory-growth.too-short"), message("memory-growth.record-longer")
        )
    found = [growth for row in values if (growth := _growth(training, *row)) is not None]
    if not found:
        return Clear(message("memory-growth.settles"))
    growth = max(found, key=lambda one: one.bytes_per_step)
    if _recorded_ratio(training, growth.rank) > MOST_RECORDED_RATIO:
        return CannotTell(
            message("memory-growth.recorder-uses-memory", grown=size(growth.grown_bytes)),
            message("memory-growth.record-without-windows"),
        )
    if growth.steps < FEWEST_STEPS:
        return CannotTell(
            message("memory-growth.may-still-settle", grown=size(growth.grown_bytes)),
            message("memory-growth.record-steps", steps=count(FEWEST_STEPS / (1 - SETTLING_RATIO))),
        )
    share = max(_slowdown_share(training, growth.rank), _page_fault_share(training, growth))
    share = share if share >= SMALLEST_SHARE else 0.0
    backward = training.place("backward")
    return Finding(
        title=_title(growth, share),
        share=share,
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=_fixes(training.framework, str(backward) if backward else None),
        evidence=(Evidence("counters", tuple(_rows(training, growth.rank))),),
        where=None,
        is_certain=share == 0,
        is_warning=share == 0,
        why=_why(growth, share),
    )


def _title(growth: Growth, share: float) -> Message:
    rate = size(growth.bytes_per_step)
    if share:
        return message("memory-growth.title-costs-time", rate=rate, share=percent(share))
    if growth.ns_until_full is not None:
        left = duration(growth.ns_until_full)
        return message("memory-growth.title-runs-out", rate=rate, left=left)
    return message("memory-growth.title", rate=rate)


def _why(growth: Growth, share: float) -> Message:
    values = {"grown": size(growth.grown_bytes), "steps": count(round(growth.steps))}
    if share and growth.ns_until_full is not None:
        left = duration(growth.ns_until_full)
        return message("memory-growth.grown-and-runs-out", left=left, **values)
    return message("memory-growth.grown", **values)


def _fixes(framework: Framework, backward: str | None) -> tuple[Message, ...]:
    return (
        message("memory-growth.find-what-grows-near", line=backward)
        if backward
        else message("memory-growth.find-what-grows"),
        fix("keep-numbers", framework),
        fix("empty-collections", framework),
        message("memory-growth.limit-caches"),
    )


def _memory(training: Training, rank: int, begin_ns: int, end_ns: int) -> tuple[Array, Array]:
    """Times and bytes while the steps ran, without the first part of the run and without what
    windows of full recording used."""
    ts_ns, value = training.counter(_COUNTER, rank)
    is_inside = (ts_ns >= begin_ns) & (ts_ns <= end_ns)
    ts_ns, value = ts_ns[is_inside], value[is_inside]
    if _recorded_ratio(training, rank) <= MOST_RECORDED_RATIO:
        ts_ns, value = _without_windows(training, rank, ts_ns, value)
    if not len(ts_ns):
        return ts_ns, value
    settled = ts_ns >= ts_ns[0] + SETTLING_RATIO * (ts_ns[-1] - ts_ns[0])
    parts = np.array_split(np.arange(len(ts_ns))[settled], min(MOST_VALUES, settled.sum()))
    return (
        np.array([np.median(ts_ns[part]) for part in parts]),
        np.array([np.median(value[part]) for part in parts]),
    )


def _without_windows(
    training: Training, rank: int, ts_ns: Array, value: Array
) -> tuple[Array, Array]:
    """Values outside of windows, each less the memory that earlier windows used."""
    windows = training.run.sql(
        "SELECT ts_ns, end_ns FROM outline WHERE kind = 'annotation' AND rank = $rank "
        "AND starts_with(name, 'strobe window') ORDER BY ts_ns",
        {"rank": rank},
    ).fetchall()
    value = value.astype(np.float64)
    for begin_ns, end_ns in windows:
        before = ts_ns < begin_ns
        after = ts_ns >= end_ns + (WINDOW_LENGTHS - 1) * (end_ns - begin_ns)
        if before.any() and after.any():
            value[after] -= max(0.0, float(value[after][0] - value[before][-1]))
        ts_ns, value = ts_ns[before | after], value[before | after]
    return ts_ns, value


def _recorded_ratio(training: Training, rank: int) -> float:
    """The part of the steps that were recorded in full."""
    ((ratio,),) = training.run.sql(
        f"SELECT avg(is_recorded::INT) FROM step_times WHERE rank = {rank}"
    ).fetchall()
    return float(ratio or 0.0)


def _growth(training: Training, rank: int, ts_ns: Array, value: Array) -> Growth | None:
    if len(ts_ns) < FEWEST_VALUES:
        return None
    steps = training.run.sql(
        f"SELECT step, ts_ns + dur_ns AS end_ns FROM step_times WHERE rank = {rank} ORDER BY step"
    ).fetchnumpy()
    steps_done = np.interp(
        ts_ns.astype(float), steps["end_ns"].astype(float), steps["step"].astype(float)
    )
    minimums = _minimums(steps_done, value)
    grown = float(minimums[-1] - minimums[0])
    per_step = slope(steps_done, value)
    if per_step <= 0 or grown < max(LEAST_GROWTH_BYTES, LEAST_GROWTH_RATIO * float(minimums[0])):
        return None
    has_few = len(value) < FEWEST_OF_PART * PARTS
    if not _keeps_growing(minimums):
        return None
    if has_few and _largest_drop(value) > MOST_DROPPED_RATIO * grown:
        return None
    limit = _limit(training, rank)
    per_ns = slope(ts_ns, value)
    is_known = limit is not None and per_ns > 0
    left = max(0.0, limit - float(value[-1])) / per_ns if is_known and limit is not None else None
    step_count = float(steps_done[-1] - steps_done[0])
    return Growth(rank, per_step, per_ns, int(per_step * step_count), step_count, left)


def _minimums(steps_done: Array, value: Array) -> Array:
    """The smallest value in each part of the steps: memory that is never freed raises it, memory
    that comes and goes does not. Parts have equally many steps, because values are denser at the
    beginning."""
    evenly = np.linspace(steps_done[0], steps_done[-1], max(len(steps_done), 4 * PARTS))
    values = np.interp(evenly, steps_done, value)
    return np.array([part.min() for part in np.array_split(values, PARTS)])


def _largest_drop(value: Array) -> float:
    """By how much it ever was below an earlier value."""
    return float((np.maximum.accumulate(value) - value).max())


def _keeps_growing(minimums: Array) -> bool:
    grown = np.diff(minimums)
    half = len(grown) // 2
    is_falling = int((grown <= 0).sum()) > MOST_FALLING
    return not is_falling and grown[-half:].mean() >= STEADY_RATIO * grown[:half].mean()


def _limit(training: Training, rank: int) -> float | None:
    found = training.run.sql(
        f"SELECT max(value) FROM counters WHERE rank = {rank} AND name = 'memory_usable_bytes'"
    ).fetchall()
    return found[0][0] if found else None


def _slowdown_share(training: Training, rank: int) -> float:
    """The time that steps take beyond the first one, as a share of step time; 0 if they do not get
    longer, or if little of that is system time."""
    steps = training.steps
    mine = steps["rank"] == rank
    length = (steps["dur_ns"] - steps["recorder_ns"] - steps["data_ns"])[mine].astype(float)
    length -= _pauses_ns(training, rank, steps["step"][mine])
    if len(length) < FEWEST_STEPS:
        return 0.0
    quarters = [float(np.median(part)) for part in np.array_split(length, 4)]
    is_rising = all(a < b for a, b in zip(quarters, quarters[1:], strict=False))
    if not is_rising or quarters[-1] < SLOWER_RATIO * quarters[0]:
        return 0.0
    system_ns = _system_per_step_ns(training, rank)
    if system_ns < SYSTEM_OF_SLOWER_RATIO * (quarters[-1] - quarters[0]):
        return 0.0
    # A line through the steps. It begins at the first step of the training, which is not judged,
    # because no memory had grown yet; it is compared with the mean.
    number = steps["step"][mine].astype(float)
    per_step = slope(number, length)
    begin = max(
        LEAST_BEGIN_RATIO * float(length.min()), float(np.median(length - per_step * number))
    )
    return max(0.0, 1 - begin / max(begin, begin + per_step * float(number.mean())))


def _pauses_ns(training: Training, rank: int, steps: Array) -> Array:
    """Pauses of Python's garbage collector in each of these steps, which are a separate fault."""
    rows = training.rows(f"""
        SELECT s.step, sum(o.dur_ns)::BIGINT AS dur_ns FROM outline o
        ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'gc' AND o.rank = {rank} GROUP BY s.step
    """)
    by_step = {row["step"]: row["dur_ns"] for row in rows}
    return np.array([by_step.get(step, 0) for step in steps.tolist()], dtype=float)


def _system_per_step_ns(training: Training, rank: int) -> float:
    """By how much the system time of a step is larger in the last quarter than in the first."""
    mine = training.steps["rank"] == rank
    begins = training.steps["ts_ns"][mine].astype(float)
    ts_ns, total_ns = training.counter("system_cpu_ns_total", rank)
    if len(ts_ns) < FEWEST_VALUES or len(begins) < FEWEST_STEPS:
        return 0.0
    quarter = len(begins) // 4
    at = begins[[0, quarter, -quarter - 1, -1]]
    system = np.interp(at, ts_ns.astype(float), total_ns.astype(float))
    return float((system[3] - system[2]) - (system[1] - system[0])) / quarter


def _page_fault_share(training: Training, growth: Growth) -> float:
    """The share of system time beyond the usual one, as far as the growth explains it by its pages.
    Memory that an allocator frees and allocates again in every step also costs system time, and
    would do so without the growth."""
    rows = training.rows(f"""
        SELECT name, max(value) - min(value) AS passed, max(c.ts_ns) - min(c.ts_ns) AS dur_ns
        FROM counters c WHERE c.rank = {growth.rank}
          AND c.name IN ('system_cpu_ns_total', 'page_faults_total')
          AND c.ts_ns >= (SELECT min(ts_ns) FROM step_times
                          WHERE rank = {growth.rank} AND step > {WARM_UP_STEPS})
        GROUP BY name
    """)
    ratios = {row["name"]: row["passed"] / row["dur_ns"] for row in rows if row["dur_ns"]}
    system = ratios.get("system_cpu_ns_total", 0.0) - USUAL_SYSTEM_RATIO
    pages = min(ratios.get("page_faults_total", 0.0), growth.bytes_per_ns / PAGE_BYTES)
    ratio = min(system, pages * FAULT_NS, MOST_SYSTEM_RATIO)
    return float(ratio) if ratio >= SMALLEST_SHARE else 0.0


def _rows(training: Training, rank: int) -> list[dict[str, object]]:
    rows = training.rows(f"""
        SELECT rank, ts_ns, name, value FROM counters
        WHERE rank = {rank} AND name = '{_COUNTER}' ORDER BY ts_ns
    """)
    return rows[:: max(1, len(rows) // 8)]
