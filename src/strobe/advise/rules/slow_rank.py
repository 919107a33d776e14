"""One rank makes the others wait.

## What it is
In data-parallel training a step ends when the slowest rank has computed its gradients. One
straggler slows down all ranks: a rank with a slower disk, a busier machine, longer sequences or a
fault in its code.

## How it is judged
Strobe compares the steps of all ranks. The work of a rank is its step without the exchange of
gradients. A rank is slow if it works longer than the others in at least three of four steps, and
the others spend at least half of that difference waiting in the exchange. A finding needs a
difference of 10% of a step.

A rank may also take longer because it waits for a free core. Strobe cannot tell if a rank computes
longer, in its passes or in programs between its steps, without using more CPU time, while other
processes or the ranks themselves keep the machine busy.

Some compiled programs compute and exchange gradients in one call. Work outside of them is judged in
all steps. Work inside them is judged in the steps recorded in full, and all of those must agree.

Where the exchange runs on devices, the slow rank is the one that hardly waits in collectives in
which all others wait.

## How to fix
Look at the part of the step that takes longer than on the other ranks. Data: the disk, the shard
and the workers of the rank. Forward and backward: longer sequences, a hotter or shared device,
another process on that machine. Update or gap: logging, checkpoints or evaluation that only this
rank does.
"""

from collections.abc import Callable

import numpy as np

from strobe.advise.evidence.device_model import device_times
from strobe.advise.evidence.stack_lines import TYPICAL_LOOKS, line_of
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import at_line
from strobe.advise.thresholds import MOST_MEASURED, speedup
from strobe.advise.training import Array, Training
from strobe.analyse.intervals import hidden
from strobe.analyse.tables.steps import communication
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.messages import Message, message
from strobe.model.schema import COMPILED_PROGRAMS
from strobe.units import count, duration, percent

NAME = "slow-rank"

# Ranks that share a machine differ by a few percent anyway.
SMALLEST_SHARE = 0.1
# A rank that is the slowest by chance is the slowest in one of two steps, or fewer.
SLOWER_STEPS_RATIO = 0.75
# If it also uses more CPU time, its own work is the reason, and noise may hide that more often.
SLOWER_STEPS_WITH_MORE_CPU_RATIO = 0.65
MORE_CPU_RATIO = 1.2
# If other processes use this many cores, a rank may wait for one.
CROWDED_CORES = 0.5
# If this part of the cores is busy, ranks wait for each other's threads. On a small machine, less
# than half a core must be free.
ALL_BUSY_RATIO = 0.9
# A part of a step computes if operators fill it to this degree.
COMPUTING_RATIO = 0.5
# The others must wait for at least this part of the difference.
WAITED_FOR_RATIO = 0.5
# Fewer steps than this could be chance.
FEWEST_STEPS = 5

# Parts of a step that a compiled program may run in one call, together with the exchange.
_IN_PROGRAMS = ("forward", "backward", "update")

_PARTS = {
    "data": message("slow-rank.data"),
    "gap": message("slow-rank.gap"),
    "forward": message("slow-rank.forward"),
    "backward": message("slow-rank.backward"),
    "update": message("slow-rank.update"),
    "rest": message("slow-rank.rest"),
}


def check(training: Training) -> Verdict:
    ranks = np.unique(training.steps["rank"])
    if len(ranks) < 2:
        return CannotTell(
            message("slow-rank.one-rank" if _trains_alone(training) else "slow-rank.ranks-missing"),
            message("slow-rank.record-all-ranks"),
        )
    columns = {**training.steps, "no_core_ns": training.no_core_ns}
    table = _by_rank_and_step(columns, ranks)
    if not table["all_reduce"].any():
        return _on_devices(training)
    if training.runs_programs:
        return _with_programs(training, ranks, columns)
    return _on_host(training, ranks, table)


def _trains_alone(training: Training) -> bool:
    return all((rank.world_size or 1) == 1 for rank in training.run.manifest.ranks)


def _by_rank_and_step(steps: dict[str, Array], ranks: Array) -> dict[str, Array]:
    """For each part an array by rank and step, with the steps that every rank has."""
    numbers = [set(steps["step"][steps["rank"] == rank].tolist()) for rank in ranks]
    shared = sorted(set.intersection(*numbers))
    found = {}
    for part in ("dur", "recorder", "no_core", "all_reduce", *_PARTS):
        column = steps[f"{part}_ns"]
        if part == "gap":
            column = column - steps["data_ns"]
        found[part] = np.array([
            column[(steps["rank"] == rank) & np.isin(steps["step"], shared)] for rank in ranks
        ])  # fmt: skip
    return found


def _with_programs(training: Training, ranks: Array, columns: dict[str, Array]) -> Verdict:
    """For compiled programs that compute and exchange in one call.

    How long the exchange takes inside a program is measured in the steps recorded in full, and
    estimated from those in the others. So the work outside of programs is judged in all steps, and
    the work inside them only in those recorded in full.
    """
    outside = dict(columns)
    parts = [columns[f"{part}_ns"] for part in ("all_reduce", *_IN_PROGRAMS)]
    inside_ns = outside["all_reduce_ns"] = np.sum(parts, axis=0)
    outside["no_core_ns"] = columns["no_core_ns"] * (1 - inside_ns / columns["dur_ns"].clip(1))
    for part in _IN_PROGRAMS:
        outside[f"{part}_ns"] = np.zeros_like(inside_ns)
    verdict = _on_host(training, ranks, _by_rank_and_step(outside, ranks))
    if isinstance(verdict, Finding):
        return verdict
    in_full = _by_rank_and_step(_steps_in_full(training), ranks)
    return _on_host(training, ranks, in_full, all_must_agree=True)


def _steps_in_full(training: Training) -> dict[str, Array]:
    """The columns of the steps recorded in full."""
    rows = training.run.sql(
        f"SELECT * FROM step_times WHERE is_recorded AND step > {WARM_UP_STEPS} ORDER BY rank, step"
    ).fetchnumpy()
    found: dict[str, Array] = {name: np.asarray(column) for name, column in rows.items()}
    no_core_ns = np.zeros(len(found["step"]))
    for rank in np.unique(found["rank"]).tolist():
        mine = found["rank"] == rank
        begins = found["ts_ns"][mine]
        no_core_ns[mine] = training.no_core_between(rank, begins, begins + found["dur_ns"][mine])
    return {**found, "no_core_ns": no_core_ns}


def _on_host(
    training: Training, ranks: Array, table: dict[str, Array], all_must_agree: bool = False
) -> Verdict:
    if table["dur"].shape[1] < FEWEST_STEPS:
        return _too_few_steps(table["dur"].shape[1])
    # Waiting for a core that others use is not the rank's own work.
    work = table["dur"] - table["recorder"] - table["all_reduce"] - table["no_core"]
    slow = int(np.argmax(np.median(work, axis=1)))
    rest = np.delete(np.arange(len(ranks)), slow)
    excess = work[slow] - np.median(work[rest], axis=0)
    waited = np.median(np.median(table["all_reduce"][rest], axis=0) - table["all_reduce"][slow])
    step_ns = float(np.median(table["dur"] - table["recorder"]))
    excess_ns = float(np.median(excess))
    share = excess_ns / max(1.0, step_ns)
    computes_more = _computes_more(training, int(ranks[slow]))
    needed = SLOWER_STEPS_WITH_MORE_CPU_RATIO if computes_more else SLOWER_STEPS_RATIO
    needed = 1.0 if all_must_agree else needed
    is_consistent = bool((excess > 0).mean() >= needed)
    is_waited_for = waited >= WAITED_FOR_RATIO * excess_ns
    if share < SMALLEST_SHARE or not is_consistent or not is_waited_for:
        return _clear(int(ranks[slow]), share, is_consistent)
    longer = {part: float(np.median(table[part][slow] - np.median(table[part][rest], axis=0)))
              for part in _PARTS}  # fmt: skip
    part = max(longer, key=lambda name: longer[name])
    if computes_more is False and _is_computing(training, part, int(ranks[slow])):
        reason = _busy_cores(training, int(ranks[slow]))
        if reason:
            return CannotTell(reason, message("slow-rank.record-on-idle-machine"))
    rows = training.rows(f"""
        SELECT rank, count(*) AS steps, {
        ", ".join(
            f"median({name}_ns)::BIGINT AS {name}_ns" for name in ("dur", "all_reduce", *_PARTS)
        )
    } FROM step_times WHERE NOT is_slowed GROUP BY rank ORDER BY rank
    """)
    where = _where(training, part, int(ranks[slow]))
    return Finding(
        title=_title(share, int(ranks[slow]), len(ranks)),
        why=_why(_PARTS[part], longer[part], int(ranks[slow]), len(ranks)),
        share=share,
        expected_speedup=1 / (1 - share * _removable_ratio(part, computes_more, len(ranks))),
        fixes=_fixes(part, int(ranks[slow]), where),
        evidence=(Evidence("steps", tuple(rows)),),
        where=where,
    )


def _too_few_steps(number: int) -> CannotTell:
    if number == 0:
        reason = message("slow-rank.no-common-step")
    elif number == 1:
        reason = message("slow-rank.one-common-step")
    else:
        reason = message("slow-rank.few-common-steps", count=count(number))
    return CannotTell(reason, message("slow-rank.record-more-steps"))


def _clear(rank: int, share: float, is_consistent: bool) -> Clear:
    values = {"rank": rank, "share": percent(max(0.0, share))}
    if share < SMALLEST_SHARE:
        return Clear(message("slow-rank.small", **values))
    if not is_consistent:
        return Clear(message("slow-rank.not-consistent", **values))
    return Clear(message("slow-rank.nobody-waits", **values))


def _title(share: float, rank: int, ranks: int) -> Message:
    id = "slow-rank.title-two-ranks" if ranks == 2 else "slow-rank.title"
    return message(id, share=percent(share), rank=rank)


def _why(part: Message, longer_ns: float, rank: int, ranks: int) -> Message:
    id = "slow-rank.why-two-ranks" if ranks == 2 else "slow-rank.why"
    return message(id, rank=rank, part=part, duration=duration(longer_ns))


def _removable_ratio(part: str, computes_more: bool | None, ranks: int) -> float:
    """The part of the difference that a fix removes. Longer batches do not go away, but can be
    divided among all ranks."""
    return (ranks - 1) / ranks if part in ("forward", "backward") and computes_more else 1.0


_CORES_BY_RANK = """
    SELECT rank, (max(value) - min(value)) / nullif(max(ts_ns) - min(ts_ns), 0) AS cores
    FROM counters WHERE name = 'process_cpu_ns_total' GROUP BY rank
"""


def _computes_more(training: Training, rank: int) -> bool | None:
    """Whether a rank's process uses more CPU time than the others'; None if unknown."""
    rows = training.run.sql(_CORES_BY_RANK).fetchall()
    cores = {of: used for of, used in rows if used is not None}
    others = [used for of, used in cores.items() if of != rank]
    if rank not in cores or not others:
        return None
    return bool(cores[rank] >= MORE_CPU_RATIO * float(np.median(others)))


def _busy_cores(training: Training, rank: int) -> Message | None:
    """Why a rank may wait for a core; None if some are free."""
    ((busy, usable, ours),) = training.run.sql(f"""
        SELECT avg(value) FILTER (name = 'cores_busy_milli') / 1000,
               max(value) FILTER (name = 'cores_usable_milli') / 1000,
               (SELECT sum(cores) FROM ({_CORES_BY_RANK}))
        FROM counters
    """).fetchall()
    others = (busy or 0.0) - (ours or 0.0)
    if busy is not None and others > CROWDED_CORES:
        return message("slow-rank.others-use-cores", rank=rank, cores=f"{others:.1f}")
    none_left = min(ALL_BUSY_RATIO * (usable or 0.0), (usable or 0.0) - CROWDED_CORES)
    if busy is not None and usable and busy >= none_left:
        if usable == 1:
            return message("slow-rank.ranks-use-core", rank=rank)
        return message("slow-rank.ranks-use-cores", rank=rank, cores=f"{usable:g}")
    return None


def _is_computing(training: Training, part: str, rank: int) -> bool:
    """Whether operators or programs fill that part of its steps, in those recorded in full.

    Python code is different: it runs on the training thread, whose waits for a core are measured.
    """
    if part in ("forward", "backward"):
        return True
    phases = f"SELECT rank, ts_ns, end_ns FROM outline WHERE kind = 'phase' AND name = '{part}'"
    in_full = "(rank, step) IN (SELECT rank, step FROM recorded_steps)"
    of_rank = f"{phases} AND rank = {rank} AND {in_full}"
    work = f"""
        SELECT t.rank, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
        FROM events e JOIN tracks t ON t.id = e.track_id
        WHERE e.kind = 'op' OR (e.kind = 'runtime' AND t.name = '{COMPILED_PROGRAMS}')
    """
    ((worked_ns, all_ns),) = training.run.sql(f"""
        SELECT sum(hidden_ns), sum(end_ns - ts_ns) FROM ({hidden(of_rank, work, "rank")})
    """).fetchall()
    return bool(all_ns) and worked_ns >= COMPUTING_RATIO * all_ns


_PLACES = {"data": "data loader", "forward": "model call", "backward": "backward",
           "update": "update", "gap": "data loop"}  # fmt: skip


def _where(training: Training, part: str, rank: int) -> str | None:
    """The line that takes most of that part on this rank, or else the line that begins it."""
    if part != "data":
        condition = f"rank = {rank} AND phase = '{part}'"
        line = line_of(training, condition, looks=TYPICAL_LOOKS)
        if line:
            return str(line)
    place = training.place(_PLACES.get(part, part), rank=rank)
    return str(place) if place else None


def _fixes(part: str, rank: int, where: str | None) -> tuple[str, ...]:
    if part == "data":
        return (message("slow-rank.speed-up-data", rank=rank, at=at_line(where)),)
    if part in ("forward", "backward"):
        return (
            message("slow-rank.balance-work", rank=rank),
            message("slow-rank.check-machine", rank=rank),
        )
    return (message("slow-rank.do-less-on-rank", rank=rank, at=at_line(where)),)


def _on_devices(training: Training) -> Verdict:
    """Compares how long each rank waits in the same collectives, over the whole recording."""
    times = device_times(training)
    waits = _device_waits(training)
    if len(waits) < 2 or not times:
        return CannotTell(
            message("slow-rank.no-common-collective"), message("slow-rank.record-same-steps")
        )
    steps = _communicating_steps(training)
    step_ns = sum(time.total_ns for time in times) / max(1, sum(time.steps for time in times))
    slow = min(waits, key=lambda rank: waits[rank])
    others = [waits[rank] for rank in waits if rank != slow]
    excess_ns = (float(np.median(others)) - waits[slow]) / steps
    share = excess_ns / max(1.0, step_ns)
    # If another rank waits as little, both are slow, like the stages of a pipeline.
    is_alone = min(others) - waits[slow] >= WAITED_FOR_RATIO * excess_ns * steps
    if share < SMALLEST_SHARE:
        return Clear(message("slow-rank.waits-small", rank=slow, share=percent(share)))
    if not is_alone:
        return Clear(message("slow-rank.not-alone", rank=slow, share=percent(share)))
    longer, ns = _longer_on_device(training, slow)
    return Finding(
        title=_title(share, slow, len(waits)),
        why=_why(longer, ns, slow, len(waits)),
        share=share,
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=_fixes("forward", slow, None),
        evidence=(
            Evidence(
                communication.NAME,
                tuple({"rank": rank, "wait_ns": waits[rank]} for rank in sorted(waits)),
            ),
        ),
        is_certain=steps >= FEWEST_STEPS,
    )


def _device_waits(training: Training) -> dict[int, int]:
    """By rank: how long it waits for others in collectives that all ranks take part in."""
    relation = communication.run(training.run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    waits: dict[int, int] = {}
    for row in rows:
        if row["wait_ns"] is not None and row["device"] != "cpu":
            waits[row["rank"]] = waits.get(row["rank"], 0) + row["wait_ns"]
    return waits


def _communicating_steps(training: Training) -> int:
    """The number of steps with collectives, judged or not."""
    ((number,),) = training.run.sql("""
        SELECT max(steps) FROM (
            SELECT count(DISTINCT step) AS steps FROM device_work
            WHERE part = 'communication' GROUP BY rank)
    """).fetchall()
    return max(1, number or 1)


def _longer_on_device(training: Training, slow: int) -> tuple[Message, float]:
    """What takes longest per step on this rank, compared with the others."""
    times = device_times(training)
    compute, copies, launches = (
        message("slow-rank.device-compute"),
        message("slow-rank.device-copies"),
        message("slow-rank.device-launches"),
    )
    parts = {
        compute: [(time.rank, time.compute_ns / time.steps) for time in times],
        copies: [(time.rank, time.memory_ns / time.steps) for time in times],
        launches: [(time.rank, time.late_ns / time.steps) for time in times],
    }
    longer = {
        part: _median(values, lambda rank: rank == slow)
        - _median(values, lambda rank: rank != slow)
        for part, values in parts.items()
    }
    part = max(longer, key=lambda name: longer[name])
    return part, longer[part]


def _median(values: list[tuple[int, float]], is_wanted: Callable[[int], bool]) -> float:
    chosen = [value for rank, value in values if is_wanted(rank)]
    return float(np.median(chosen)) if chosen else 0.0
