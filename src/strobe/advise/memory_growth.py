"""Memory grows with every step, without end.

## What it is
Something is kept from each step: the loss as a tensor (`total += loss` keeps the whole graph of
every step, `total += loss.item()` a number), outputs collected in a list, a cache without a limit.
Training slows down as memory is handed out anew, and one day the process is killed.

## How it is judged
The memory that the process has for itself (RSS without what it shares) is measured twice a second.
After the first fifth of the run, in which everything is first allocated, it must grow through all
four quarters of what is left, by at least 5 % and 32 MB, and not level off. In a recording of a few
seconds it must not fall in between by more than a fifth of that. What the system takes
of the time to hand out fresh memory, or what steps take longer than the first ones, is the cost;
without either it is a warning: it costs no time yet.

## How to fix
Keep numbers instead of tensors (`.item()`, `.detach()`), give caches a limit, and empty what you
collect once it is written down.
"""

from typing import NamedTuple

import numpy as np

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Array, Training
from strobe.analyse.steps import WARM_UP_STEPS
from strobe.units import duration, percent, size

NAME = "memory-growth"

# In the first part of a run the process allocates what it will use again and again.
SETTLING_RATIO = 0.2
# Too few to see whether growth goes on in each quarter.
FEWEST_VALUES = 8
FEWEST_STEPS = 20
# Those of a long run are put together to so many: every pair of them is looked at.
MOST_VALUES = 120
# Less is what allocators and caches do in a healthy training.
LEAST_GROWTH_RATIO = 0.05
LEAST_GROWTH_BYTES = 32 << 20
# Growth that goes on: from each quarter to the next by so much, as part of the mean.
STEADY_RATIO = 0.4
# What is kept is not given back: memory that falls in between by more than this part of its growth
# may come and go with the allocator, unless it grows for so long.
MOST_FALLEN_RATIO = 0.2
LONG_NS = 5_000_000_000
# The system's own part of the time in a training that takes no fresh memory, and the most that is
# believed: several threads can fetch memory at once.
USUAL_SYSTEM_RATIO = 0.02
MOST_SYSTEM_RATIO = 0.6
# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05
# Steps are longer in the end by this, and each quarter more than the one before: no noise.
SLOWER_RATIO = 1.15
# What the first step would have taken is no less than this part of the shortest one: a line
# through noise may begin below nothing.
LEAST_BEGIN_RATIO = 0.5


_COUNTER = "rss_private_bytes"


class Growth(NamedTuple):
    rank: int
    bytes_a_step: float
    grown_bytes: int
    last_bytes: int
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
            "memory was measured too seldom in so short a training",
            "record for some seconds: strobe run train.py",
        )
    found = [growth for row in values if (growth := _growth(training, *row)) is not None]
    if not found:
        return Clear("memory settles")
    growth = max(found, key=lambda one: one.bytes_a_step)
    share = max(_slowed_ratio(training, growth.rank), _system_ratio(training, growth.rank))
    backward = training.place("backward")
    return Finding(
        title=_title(growth, share),
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_fixes(training.framework, str(backward) if backward else None),
        evidence=(Evidence("counters", tuple(_rows(training, growth.rank))),),
        where=None,
        is_certain=share == 0,
        is_warning=share < WORTH_TELLING_RATIO,
    )


def _title(growth: Growth, share: float) -> str:
    told = (
        f"memory grows by {size(growth.bytes_a_step)} a step, so far by {size(growth.grown_bytes)}"
    )
    if growth.ns_until_full is not None:
        told += f", and is full in {duration(growth.ns_until_full)}"
    return f"{told}; that slows steps down by about {percent(share)}" if share else told


def _fixes(framework: str, backward: str | None) -> tuple[str, ...]:
    at = f" (near {backward})" if backward else ""
    return (
        fix("keep-numbers", framework, at),
        fix("empty-collections", framework),
        "give caches a limit: functools.lru_cache(maxsize=1000), collections.deque(maxlen=1000)",
    )


def _memory(training: Training, rank: int, begin_ns: int, end_ns: int) -> tuple[Array, Array]:
    """Moments and bytes while the steps ran, the settling part left out."""
    ts_ns, value = training.counter(_COUNTER, rank)
    is_inside = (ts_ns >= begin_ns) & (ts_ns <= end_ns)
    ts_ns, value = ts_ns[is_inside], value[is_inside]
    if not len(ts_ns):
        return ts_ns, value
    settled = ts_ns >= ts_ns[0] + SETTLING_RATIO * (ts_ns[-1] - ts_ns[0])
    parts = np.array_split(np.arange(len(ts_ns))[settled], min(MOST_VALUES, settled.sum()))
    return (
        np.array([np.median(ts_ns[part]) for part in parts]),
        np.array([np.median(value[part]) for part in parts]),
    )


def _growth(training: Training, rank: int, ts_ns: Array, value: Array) -> Growth | None:
    if len(ts_ns) < FEWEST_VALUES:
        return None
    steps = training.run.sql(
        f"SELECT step, ts_ns + dur_ns AS end_ns FROM step_times WHERE rank = {rank} ORDER BY step"
    ).fetchnumpy()
    if len(steps["step"]) < FEWEST_STEPS:
        return None
    done = np.interp(
        ts_ns.astype(float), steps["end_ns"].astype(float), steps["step"].astype(float)
    )
    grown = float(np.median(value[-3:]) - np.median(value[:3]))
    slope = _slope(done, value)
    if slope <= 0 or grown < max(LEAST_GROWTH_BYTES, LEAST_GROWTH_RATIO * float(value[0])):
        return None
    if _fallen(value) > MOST_FALLEN_RATIO * grown and ts_ns[-1] - ts_ns[0] < LONG_NS:
        return None
    if not _goes_on(done, value) and not _slowed_ratio(training, rank):
        return None
    limit = _limit(training, rank)
    a_ns = _slope(ts_ns, value)
    left = max(0.0, limit - float(value[-1])) / a_ns if limit is not None and a_ns > 0 else None
    return Growth(rank, slope, int(grown), int(value[-1]), left)


def _goes_on(done: Array, value: Array) -> bool:
    """Whether memory grows from each quarter of the steps to the next. Values lie closer at the
    beginning: they are taken at as many steps that lie evenly."""
    evenly = np.interp(np.linspace(done[0], done[-1], len(done)), done, value)
    grown = np.diff([float(np.median(part)) for part in np.array_split(evenly, 4)])
    return bool(grown.min() >= STEADY_RATIO * grown.mean())


def _fallen(value: Array) -> float:
    """The most by which it ever was below what it had been."""
    return float((np.maximum.accumulate(value) - value).max())


def _slope(x: Array, y: Array) -> float:
    """The median of the slopes between all pairs of points: a single jump does not make it."""
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    is_apart = run > 0
    if not is_apart.any():
        return 0.0
    return float(np.median((y[second] - y[first])[is_apart] / run[is_apart]))


def _limit(training: Training, rank: int) -> float | None:
    found = training.run.sql(
        f"SELECT max(value) FROM counters WHERE rank = {rank} AND name = 'memory_usable_bytes'"
    ).fetchall()
    return found[0][0] if found else None


def _slowed_ratio(training: Training, rank: int) -> float:
    """What steps take beyond the first ones, as part of all; 0 if they do not get longer."""
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
    # A line through them: where it begins, which is with the first step of the training, when
    # nothing was kept yet, though that is not one of those judged; and their mean.
    number = steps["step"][mine].astype(float)
    few = np.linspace(0, len(length) - 1, min(MOST_VALUES, len(length))).astype(int)
    slope = _slope(number[few], length[few])
    begin = max(LEAST_BEGIN_RATIO * float(length.min()), float(np.median(length - slope * number)))
    return max(0.0, 1 - begin / max(begin, begin + slope * float(number.mean())))


def _pauses_ns(training: Training, rank: int, steps: Array) -> Array:
    """Of Python's garbage collector, in each of these steps: a fault of its own."""
    rows = training.rows(f"""
        SELECT s.step, sum(o.dur_ns)::BIGINT AS dur_ns FROM outline o
        ASOF JOIN step_times s ON s.rank = o.rank AND s.ts_ns <= o.ts_ns
        WHERE o.kind = 'gc' AND o.rank = {rank} GROUP BY s.step
    """)
    by_step = {row["step"]: row["dur_ns"] for row in rows}
    return np.array([by_step.get(step, 0) for step in steps.tolist()], dtype=float)


def _system_ratio(training: Training, rank: int) -> float:
    """What the system took of the time to hand out fresh memory, beyond what it takes anyway."""
    rows = training.rows(f"""
        SELECT max(value) - min(value) AS cpu_ns, max(c.ts_ns) - min(c.ts_ns) AS dur_ns
        FROM counters c WHERE c.rank = {rank} AND c.name = 'system_cpu_ns_total'
          AND c.ts_ns >= (SELECT min(ts_ns) FROM step_times
                          WHERE rank = {rank} AND step > {WARM_UP_STEPS})
    """)
    if not rows or not rows[0]["dur_ns"]:
        return 0.0
    ratio = rows[0]["cpu_ns"] / rows[0]["dur_ns"] - USUAL_SYSTEM_RATIO
    return float(min(MOST_SYSTEM_RATIO, ratio)) if ratio >= WORTH_TELLING_RATIO else 0.0


def _rows(training: Training, rank: int) -> list[dict[str, object]]:
    rows = training.rows(f"""
        SELECT rank, ts_ns, name, value FROM counters
        WHERE rank = {rank} AND name = '{_COUNTER}' ORDER BY ts_ns
    """)
    return rows[:: max(1, len(rows) // 8)]
