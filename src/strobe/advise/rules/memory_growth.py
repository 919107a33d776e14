"""Memory grows with every step, without end.

## What it is
Something is kept from each step: the loss as a tensor (`total += loss` keeps the whole graph of
every step, `total += loss.item()` a number), outputs collected in a list, a cache without a limit.
One day the process is killed.

## How it is judged
The memory that the process has for itself (RSS without what it shares) is measured twice a second.
The first fifth of the run is left out, in which everything is first allocated, and so is what
Strobe's own windows of full recording took. From there on the least memory of each eighth of the
steps must be more than that of the one before, grow in the second half nearly as much as in the
first, and by at least 10% and 32 MiB in all, over at least 60 steps: less is an allocator that
settles. In a short run, or where all steps are recorded in full, the answer is that it cannot tell.

It is a warning. Only time that is shown to go into fresh memory is a cost: page faults, which the
system spends time on, and steps that get longer by the system's time. That steps get longer is no
evidence by itself.

## How to fix
Keep numbers instead of tensors (`.item()`, `.detach()`), give caches a limit, and empty what you
collect once it is written down.
"""

from typing import NamedTuple

import numpy as np

from strobe.advise.evidence.trend import slope
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Array, Training
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.units import count, duration, percent, size

NAME = "memory-growth"

# In the first part of a run the process allocates what it will use again and again.
SETTLING_RATIO = 0.2
# Too few to see whether growth goes on in each eighth.
FEWEST_VALUES = 8
# Allocators settle over some tens of steps.
FEWEST_STEPS = 60
# Those of a long run are put together to so many: every pair of them is looked at.
MOST_VALUES = 120
# Less is what allocators and caches do in a healthy training.
LEAST_GROWTH_RATIO = 0.1
LEAST_GROWTH_BYTES = 32 << 20
# Growth that goes on: the least memory of an eighth of the steps is more than that of the one
# before, but for one; and in the second half it grows by this part of what it did in the first.
PARTS = 8
MOST_FALLING = 1
FEWEST_OF_PART = 4
MOST_FALLEN_RATIO = 0.2
STEADY_RATIO = 0.75
# A window of full recording has taken its memory when so many times its length have passed, and a
# run that is recorded in full in this part of its steps shows the recorder's memory.
WINDOW_LENGTHS = 2
MOST_RECORDED_RATIO = 0.3
# The system's own part of the time in a training that takes no fresh memory, and the most that is
# believed: several threads can fetch memory at once.
USUAL_SYSTEM_RATIO = 0.02
MOST_SYSTEM_RATIO = 0.6
# What the system takes for a page, to find it, clear it and map it: in `benchmarks.zoo` two
# trainings with and without their growth differ by 0.7 and 1.4 us for each page they keep.
FAULT_NS = 1_500
PAGE_BYTES = 4096
# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05
# Steps are longer in the end by this, and each quarter more than the one before: no noise.
SLOWER_RATIO = 1.15
# Of what they take longer, this part is the system's time: the rest may be more work in a step.
SYSTEM_OF_SLOWER_RATIO = 0.25
# What the first step would have taken is no less than this part of the shortest one: a line
# through noise may begin below nothing.
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
            "the run is too short to judge memory growth",
            "record for some seconds: strobe run train.py",
        )
    found = [growth for row in values if (growth := _growth(training, *row)) is not None]
    if not found:
        return Clear("memory settles")
    growth = max(found, key=lambda one: one.bytes_per_step)
    if _recorded_ratio(training, growth.rank) > MOST_RECORDED_RATIO:
        return CannotTell(
            f"memory grew by {size(growth.grown_bytes)}, but full recording takes memory itself",
            "record without windows: strobe run --light train.py",
        )
    if growth.steps < FEWEST_STEPS:
        return CannotTell(
            f"memory grew by {size(growth.grown_bytes)}, but the run is too short to tell growth "
            "from an allocator that settles",
            f"record at least {count(FEWEST_STEPS / (1 - SETTLING_RATIO))} steps",
        )
    share = max(_slowed_ratio(training, growth.rank), _system_ratio(training, growth))
    share = share if share >= WORTH_TELLING_RATIO else 0.0
    backward = training.place("backward")
    return Finding(
        title=_title(growth, share),
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_fixes(training.framework, str(backward) if backward else None),
        evidence=(Evidence("counters", tuple(_rows(training, growth.rank))),),
        where=None,
        is_certain=share == 0,
        is_warning=share == 0,
    )


def _title(growth: Growth, share: float) -> str:
    told = (
        f"memory grows by {size(growth.bytes_per_step)} per step, {size(growth.grown_bytes)} so far"
    )
    if growth.ns_until_full is not None:
        told += f"; at this rate it is full in {duration(growth.ns_until_full)}"
    return f"{told}; fresh memory takes about {percent(share)} of step time" if share else told


def _fixes(framework: str, backward: str | None) -> tuple[str, ...]:
    near = f" (near {backward})" if backward else ""
    return (
        f"find what every step adds to{near}: a list of losses or outputs, a total that is a "
        "tensor, a cache without a limit",
        fix("keep-numbers", framework, ""),
        fix("empty-collections", framework),
        "give caches a limit: functools.lru_cache(maxsize=1000), collections.deque(maxlen=1000)",
    )


def _memory(training: Training, rank: int, begin_ns: int, end_ns: int) -> tuple[Array, Array]:
    """Moments and bytes while the steps ran: the settling part left out, and what windows of full
    recording took."""
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
    """Values outside of windows, each less what windows before it took."""
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
    done = np.interp(
        ts_ns.astype(float), steps["end_ns"].astype(float), steps["step"].astype(float)
    )
    floors = _floors(done, value)
    grown = float(floors[-1] - floors[0])
    per_step = slope(done, value)
    if per_step <= 0 or grown < max(LEAST_GROWTH_BYTES, LEAST_GROWTH_RATIO * float(floors[0])):
        return None
    # Where each part has few values, its least one may be chance.
    is_few = len(value) < FEWEST_OF_PART * PARTS
    if not _goes_on(floors) or (is_few and _fallen(value) > MOST_FALLEN_RATIO * grown):
        return None
    limit = _limit(training, rank)
    per_ns = slope(ts_ns, value)
    is_known = limit is not None and per_ns > 0
    left = max(0.0, limit - float(value[-1])) / per_ns if is_known and limit is not None else None
    steps_seen = float(done[-1] - done[0])
    return Growth(rank, per_step, per_ns, int(per_step * steps_seen), steps_seen, left)


def _floors(done: Array, value: Array) -> Array:
    """The least memory in each part of the steps: what is kept is never given back, what comes and
    goes is. Values lie closer at the beginning, so parts are of as many steps."""
    evenly = np.interp(np.linspace(done[0], done[-1], max(len(done), 4 * PARTS)), done, value)
    return np.array([part.min() for part in np.array_split(evenly, PARTS)])


def _fallen(value: Array) -> float:
    """The most by which it ever was below what it had been."""
    return float((np.maximum.accumulate(value) - value).max())


def _goes_on(floors: Array) -> bool:
    grown = np.diff(floors)
    half = len(grown) // 2
    is_falling = int((grown <= 0).sum()) > MOST_FALLING
    return not is_falling and grown[-half:].mean() >= STEADY_RATIO * grown[:half].mean()


def _limit(training: Training, rank: int) -> float | None:
    found = training.run.sql(
        f"SELECT max(value) FROM counters WHERE rank = {rank} AND name = 'memory_usable_bytes'"
    ).fetchall()
    return found[0][0] if found else None


def _slowed_ratio(training: Training, rank: int) -> float:
    """What steps take beyond the first ones, as part of all; 0 if they do not get longer, or if
    the system does not take much of that."""
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
    # A line through them: where it begins, which is with the first step of the training, when
    # nothing was kept yet, though that is not one of those judged; and their mean.
    number = steps["step"][mine].astype(float)
    per_step = slope(number, length)
    begin = max(
        LEAST_BEGIN_RATIO * float(length.min()), float(np.median(length - per_step * number))
    )
    return max(0.0, 1 - begin / max(begin, begin + per_step * float(number.mean())))


def _pauses_ns(training: Training, rank: int, steps: Array) -> Array:
    """Of Python's garbage collector, in each of these steps: a fault of its own."""
    rows = training.rows(f"""
        SELECT s.step, sum(o.dur_ns)::BIGINT AS dur_ns FROM outline o
        ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'gc' AND o.rank = {rank} GROUP BY s.step
    """)
    by_step = {row["step"]: row["dur_ns"] for row in rows}
    return np.array([by_step.get(step, 0) for step in steps.tolist()], dtype=float)


def _system_per_step_ns(training: Training, rank: int) -> float:
    """What the system takes of a step in the last quarter beyond what it takes in the first."""
    mine = training.steps["rank"] == rank
    begins = training.steps["ts_ns"][mine].astype(float)
    moments, passed = training.counter("system_cpu_ns_total", rank)
    if len(moments) < FEWEST_VALUES or len(begins) < FEWEST_STEPS:
        return 0.0
    quarter = len(begins) // 4
    at = begins[[0, quarter, -quarter - 1, -1]]
    system = np.interp(at, moments.astype(float), passed.astype(float))
    return float((system[3] - system[2]) - (system[1] - system[0])) / quarter


def _system_ratio(training: Training, growth: Growth) -> float:
    """What the system took of the time to hand out memory that is kept, beyond what it takes
    anyway: no more than the kept pages explain. Memory that an allocator gives back and takes
    again at every step costs the system's time too, and would do so without the growth."""
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
    return float(ratio) if ratio >= WORTH_TELLING_RATIO else 0.0


def _rows(training: Training, rank: int) -> list[dict[str, object]]:
    rows = training.rows(f"""
        SELECT rank, ts_ns, name, value FROM counters
        WHERE rank = {rank} AND name = '{_COUNTER}' ORDER BY ts_ns
    """)
    return rows[:: max(1, len(rows) // 8)]
