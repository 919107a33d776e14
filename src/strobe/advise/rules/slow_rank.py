"""One rank makes the others wait.

## What it is
In data-parallel training every step ends when the slowest rank has its gradients. A rank with a
slower disk, a busier machine, longer sequences or a fault in its code slows down all of them.

## How it is judged
From the steps of all ranks: the own work of a rank is its step less the exchange of gradients. A
rank is slow if it has more own work than the others in at least three of four steps, and the others
spend that much longer in the exchange. If it computes longer, in its passes or by programs between
its steps, without using more of the processor, and the machine is busy with other processes or with
the ranks themselves, then that is to blame, and nothing is said. Where
compiled programs compute and exchange in one call, all steps tell of the work outside of them, and
those recorded in full, which must agree, of that inside. Where the exchange runs on devices: the
rank that hardly waits in collectives which all others wait in. The part of the step that is longer
there than on the others tells where to look.

## How to fix
By the part that is longer: data (its disk, its shard, its workers), forward and backward (longer
sequences, a hotter or shared device, another process on that machine), update or gap (logging,
checkpoints, evaluation that only this rank does).
"""

from collections.abc import Callable

import numpy as np

from strobe.advise.evidence.device_model import device_times
from strobe.advise.evidence.stack_lines import TYPICAL_LOOKS, line_of
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Array, Training
from strobe.analyse.intervals import hidden
from strobe.analyse.tables.steps import communication
from strobe.analyse.tables.steps.steps import WARM_UP_STEPS
from strobe.model.schema import COMPILED_PROGRAMS
from strobe.units import duration, percent

NAME = "slow-rank"

# Ranks that share a machine differ by some percent for no reason of theirs.
WORTH_TELLING_RATIO = 0.1
# A rank that is the slowest by chance is so in one of two steps, or fewer.
SLOWER_IN_RATIO = 0.75
# A rank that also uses more of the processor is slow by its own work: noise may hide it more often.
SLOWER_IN_WITH_PROOF_RATIO = 0.65
COMPUTES_MORE_RATIO = 1.2
# From here on a machine is shared with others, and a rank may wait for the processor.
CROWDED_CORES = 0.5
# From here on ranks on one machine wait for each other's threads: it has no core left to give, a
# small one less than half of one.
ALL_BUSY_RATIO = 0.9
# A part of a step that is filled with operators to this degree computes.
COMPUTING_RATIO = 0.5
# The others must be seen waiting for at least this part of what it works longer.
SEEN_WAITING_RATIO = 0.5
# Fewer steps than this could be chance.
ENOUGH_STEPS = 5

# Parts of a step that a compiled program may run in one call, beside the exchange.
_IN_PROGRAMS = ("forward", "backward", "update")

_PARTS = {
    "data": "waiting for data",
    "gap": "the gap between steps",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "update": "the update",
    "rest": "the rest of the step",
}


def check(training: Training) -> Verdict:
    ranks = np.unique(training.steps["rank"])
    if len(ranks) < 2:
        return CannotTell(
            "one rank only was recorded" if _trains_alone(training) else "ranks are missing",
            "record all ranks in one run, or import their traces together",
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
    """Of each part an array by rank and step, of the steps that every rank has."""
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
    """A compiled program computes and exchanges in one call. What of it is the exchange was seen in
    the steps recorded in full, and is only taken to be alike in the others: these tell of what a
    rank does outside of programs, and those of the inside."""
    outside = dict(columns)
    parts = [columns[f"{part}_ns"] for part in ("all_reduce", *_IN_PROGRAMS)]
    inside_ns = outside["all_reduce_ns"] = np.sum(parts, axis=0)
    outside["no_core_ns"] = columns["no_core_ns"] * (1 - inside_ns / columns["dur_ns"].clip(1))
    for part in _IN_PROGRAMS:
        outside[f"{part}_ns"] = np.zeros_like(inside_ns)
    verdict = _on_host(training, ranks, _by_rank_and_step(outside, ranks))
    if isinstance(verdict, Finding):
        return verdict
    return _on_host(training, ranks, _by_rank_and_step(_seen_inside(training), ranks), of_few=True)


def _seen_inside(training: Training) -> dict[str, Array]:
    """The columns of steps, of those recorded in full."""
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
    training: Training, ranks: Array, table: dict[str, Array], of_few: bool = False
) -> Verdict:
    if table["dur"].shape[1] < ENOUGH_STEPS:
        return CannotTell(
            f"only {table['dur'].shape[1]} steps were recorded on all ranks", "record more steps"
        )
    # A rank from which others take the cores is late by no fault of its own.
    work = table["dur"] - table["recorder"] - table["all_reduce"] - table["no_core"]
    slow = int(np.argmax(np.median(work, axis=1)))
    rest = np.delete(np.arange(len(ranks)), slow)
    excess = work[slow] - np.median(work[rest], axis=0)
    waited = np.median(np.median(table["all_reduce"][rest], axis=0) - table["all_reduce"][slow])
    step_ns = float(np.median(table["dur"] - table["recorder"]))
    excess_ns = float(np.median(excess))
    share = excess_ns / max(1.0, step_ns)
    computes_more = _computes_more(training, int(ranks[slow]))
    needed = SLOWER_IN_WITH_PROOF_RATIO if computes_more else SLOWER_IN_RATIO
    needed = 1.0 if of_few else needed
    is_steady = (excess > 0).mean() >= needed
    is_waited_for = waited >= SEEN_WAITING_RATIO * excess_ns
    if share < WORTH_TELLING_RATIO or not is_steady or not is_waited_for:
        return Clear(f"rank {ranks[slow]} works longest, {percent(max(0.0, share))} of a step more "
                     "than the others" + ("" if is_steady else ", but not steadily"))  # fmt: skip
    longer = {part: float(np.median(table[part][slow] - np.median(table[part][rest], axis=0)))
              for part in _PARTS}  # fmt: skip
    part = max(longer, key=lambda name: longer[name])
    if computes_more is False and _is_computing(training, part, int(ranks[slow])):
        why = _crowd(training)
        if why:
            return CannotTell(
                f"rank {ranks[slow]} takes longer, but computes no more than the others: {why}",
                "record on a machine that does nothing else, with fewer threads for each rank",
            )
    rows = training.rows(f"""
        SELECT rank, count(*) AS steps, {
        ", ".join(
            f"median({name}_ns)::BIGINT AS {name}_ns" for name in ("dur", "all_reduce", *_PARTS)
        )
    } FROM step_times WHERE NOT is_slowed GROUP BY rank ORDER BY rank
    """)
    return Finding(
        title=f"the other ranks wait {percent(share)} of each step for rank {ranks[slow]}: there, "
        f"{_PARTS[part]} takes {duration(longer[part])} longer",
        share=share,
        expected_speedup=1 / (1 - share * _removable_ratio(part, computes_more, len(ranks))),
        fixes=_fixes(part, int(ranks[slow])),
        evidence=(Evidence("steps", tuple(rows)),),
        where=_where(training, part, int(ranks[slow])),
    )


def _removable_ratio(part: str, computes_more: bool | None, ranks: int) -> float:
    """Of what a rank works longer: longer batches can be shared among all, and do not vanish."""
    return (ranks - 1) / ranks if part in ("forward", "backward") and computes_more else 1.0


_CORES = """
    SELECT rank, (max(value) - min(value)) / nullif(max(ts_ns) - min(ts_ns), 0) AS cores
    FROM counters WHERE name = 'process_cpu_ns_total' GROUP BY rank
"""


def _computes_more(training: Training, rank: int) -> bool | None:
    """Whether a rank's process uses more of the processor than the others'; None if unknown."""
    cores = {of: used for of, used in training.run.sql(_CORES).fetchall() if used is not None}
    others = [used for of, used in cores.items() if of != rank]
    if rank not in cores or not others:
        return None
    return bool(cores[rank] >= COMPUTES_MORE_RATIO * float(np.median(others)))


def _crowd(training: Training) -> str:
    """What keeps the cores of the machine busy, so that a rank may wait for one; empty if they
    suffice."""
    ((busy, usable, ours),) = training.run.sql(f"""
        SELECT avg(value) FILTER (name = 'cores_busy_milli') / 1000,
               max(value) FILTER (name = 'cores_usable_milli') / 1000,
               (SELECT sum(cores) FROM ({_CORES}))
        FROM counters
    """).fetchall()
    others = (busy or 0.0) - (ours or 0.0)
    if busy is not None and others > CROWDED_CORES:
        return f"other processes kept {others:.1f} cores of the machine busy"
    none_left = min(ALL_BUSY_RATIO * (usable or 0.0), (usable or 0.0) - CROWDED_CORES)
    if busy is not None and usable and busy >= none_left:
        return f"the ranks themselves kept all {usable:g} cores of the machine busy"
    return ""


def _is_computing(training: Training, part: str, rank: int) -> bool:
    """Whether operators or programs fill that part of its steps, as far as recorded in full. What
    Python does there keeps its thread on a core, and what it lacks of one is known."""
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
    """Where the rank was seen in that part; or else the line that begins it."""
    if part != "data":
        condition = f"rank = {rank} AND phase = '{part}'"
        seen = line_of(training, condition, looks=TYPICAL_LOOKS)
        if seen:
            return str(seen)
    place = training.place(_PLACES.get(part, part), rank=rank)
    return str(place) if place else None


def _fixes(part: str, rank: int) -> tuple[str, ...]:
    if part == "data":
        return (f"make data as fast on rank {rank} as on the others: its disk, its shard, its "
                "number of workers",)  # fmt: skip
    if part in ("forward", "backward"):
        return (
            f"give rank {rank} as much work as the others: batches of the same size and length",
            f"look at the machine of rank {rank}: other processes, a throttled device, fewer "
            "threads",
        )
    return (f"look at what only rank {rank} does (if rank == {rank}: logging, saving, evaluating), "
            "and do it less often or on another thread",)  # fmt: skip


def _on_devices(training: Training) -> Verdict:
    """From waits in the same collectives; each rank's are summed over the recording."""
    times = device_times(training)
    waits = _device_waits(training)
    if len(waits) < 2 or not times:
        return CannotTell(
            "no collective was recorded on all ranks", "record the ranks at the same steps"
        )
    steps = _communicating_steps(training)
    step_ns = sum(time.total_ns for time in times) / max(1, sum(time.steps for time in times))
    slow = min(waits, key=lambda rank: waits[rank])
    others = [waits[rank] for rank in waits if rank != slow]
    excess_ns = (float(np.median(others)) - waits[slow]) / steps
    share = excess_ns / max(1.0, step_ns)
    # If another rank waits as little, they are slow together: stages of a pipeline, not one fault.
    is_alone = min(others) - waits[slow] >= SEEN_WAITING_RATIO * excess_ns * steps
    if share < WORTH_TELLING_RATIO or not is_alone:
        return Clear(f"rank {slow} waits least in collectives, {percent(share)} of a step less "
                     "than the others")  # fmt: skip
    longer, ns = _longer_on_device(training, slow)
    return Finding(
        title=f"the other ranks wait {percent(share)} of each step for rank {slow}: there, "
        f"{longer} takes {duration(ns)} longer",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=_fixes("forward", slow),
        evidence=(
            Evidence(
                communication.NAME,
                tuple({"rank": rank, "wait_ns": waits[rank]} for rank in sorted(waits)),
            ),
        ),
        is_certain=steps >= ENOUGH_STEPS,
    )


def _device_waits(training: Training) -> dict[int, int]:
    """By rank: time waited for others in collectives that all ranks took part in."""
    relation = communication.run(training.run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    waits: dict[int, int] = {}
    for row in rows:
        if row["wait_ns"] is not None and row["device"] != "cpu":
            waits[row["rank"]] = waits.get(row["rank"], 0) + row["wait_ns"]
    return waits


def _communicating_steps(training: Training) -> int:
    """In how many steps collectives were recorded, judged or not."""
    ((count,),) = training.run.sql("""
        SELECT max(steps) FROM (
            SELECT count(DISTINCT step) AS steps FROM device_work
            WHERE part = 'communication' GROUP BY rank)
    """).fetchall()
    return max(1, count or 1)


def _longer_on_device(training: Training, slow: int) -> tuple[str, float]:
    """What the rank spends more time of a step in than the others."""
    times = device_times(training)
    parts = {
        "computing on its device": [(time.rank, time.compute_ns / time.steps) for time in times],
        "copying": [(time.rank, time.memory_ns / time.steps) for time in times],
        "launching by its host": [(time.rank, time.late_ns / time.steps) for time in times],
    }
    longer = {
        part: _of(values, lambda rank: rank == slow) - _of(values, lambda rank: rank != slow)
        for part, values in parts.items()
    }
    part = max(longer, key=lambda name: longer[name])
    return part, longer[part]


def _of(values: list[tuple[int, float]], is_wanted: Callable[[int], bool]) -> float:
    chosen = [value for rank, value in values if is_wanted(rank)]
    return float(np.median(chosen)) if chosen else 0.0
