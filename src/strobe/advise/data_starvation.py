"""Training waits for its data.

## What it is
The training loop asks for the next batch, and it is not there yet. While it waits, nothing is
computed. The data is slow to come for one of these reasons, which `stage` names:

- `reading`: getting the items waits for a disk, a network, a database;
- `transform`: getting the items computes: decoding, augmenting, tokenising;
- `collate`: making one batch of the items takes long;
- `transfer`: handing batches over from worker to training process takes long;
- `workers`: there are workers, but too few of them;
- `restarts`: the workers are started anew for every epoch.

## How it is judged
Every wait of the loop is measured. What is lost is the waiting; where a device computes meanwhile,
only the part in which it ran out of work; where a batch lay ready, only what it took to take it.
Time in which training could have run but other processes had the cores is left out of both.
Inside the loader every batch is timed: time off the processor is reading, time on it is transform.
A small model of the pipeline (workers, queue, training, the cores they share) is run with these
times, with more workers and without each stage. If more workers end most of the waiting, they are
advised, as few as will do. If not, the stage that takes longest has to become quicker; the line of
the dataset at which it was seen most often is told.

Of MindSpore's datasets the queues between their operations are looked at: one that is full before
an operation and empty behind it tells which is too slow. Where that reads or sleeps, what the
process computes for a step does not become less: the gain is what steps take that found their batch
ready, or as much as the cores allow. Where it computes, training also gets its cores back.

A loop without a DataLoader is judged by looks at what Python was doing before the forward pass.

## How to fix
`DataLoader(..., num_workers=4, persistent_workers=True)` reads ahead while training computes.
Reading: keep in memory what is read again, store many small files as few large ones. Transform and
collate: work on arrays instead of single values, do once and store what is the same in every epoch.
Transfer: give tensors, not lists of Python objects; move less. In MindSpore each operation has
workers of its own: `dataset.map(..., num_parallel_workers=4)`. In JAX, grain has processes
(`worker_count`, `mp_prefetch`), tf.data threads (`prefetch`, `num_parallel_calls`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from strobe.advise import pipeline_model
from strobe.advise.device_model import device_times
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.library_iterator import LOADERS, of_library
from strobe.advise.loader import Loader, loaders, longest_waits
from strobe.advise.pipeline_model import Work
from strobe.advise.plain_source import plain_source
from strobe.advise.queue_pipeline import slowest
from strobe.advise.training import Training
from strobe.analyse import data_pipeline
from strobe.units import duration

NAME = "data-starvation"

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05
# More workers are the remedy if they end this much of the waiting; else it comes back at once.
CURED_RATIO = 0.7
# A number of workers that is this close to the best is as good, and costs less memory.
AS_GOOD_RATIO = 1.03
# More than this (or than there are cores) is not advised: each holds a copy of the dataset.
MOST_WORKERS = 8
# If this much of the waiting is at the boundaries of epochs, or with batches ready, that is it.
MOSTLY_RATIO = 0.5

# To unpack a batch that a worker made takes an operator or two for each of its tensors; to make one
# takes several for each item.
MAKING_OPERATORS = 20

STAGES = ("reading", "transform", "collate", "transfer")
_STAGE_WORDS = {
    "reading": "reading (waiting for a disk, a network, another process)",
    "transform": "computing the items",
    "collate": "collating the items",
    "transfer": "handing batches over",
}
_STAGE_FIXES = {
    "reading": "keep in memory what is read again, and store many small files as few large ones",
    "transform": "work on whole arrays instead of single values, and do once, before training, "
    "what is the same in every epoch",
    "collate": "stack tensors in one call (torch.stack, torch.nn.utils.rnn.pad_sequence) instead "
    "of going through values one by one",
    "transfer": "give tensors instead of lists of Python objects, as small as they can be "
    "(uint8 images, converted after they came)",
}


@dataclass(frozen=True)
class _Cause:
    stage: str | None
    why: str
    recovered: float  # part of the waiting that ends with it
    fixes: tuple[str, ...]
    where: str | None
    is_certain: bool = True


def check(training: Training) -> Verdict:
    found = loaders(training)
    if not found:
        return _without_loader(training)
    loader = found[0]
    lost = _lost_ratio(training, loader)
    share = min(1.0, lost * loader.lost_ns / loader.quiet_ns)
    if share < WORTH_TELLING_RATIO:
        hidden = ", the rest while a device computes" if lost < 1 else ""
        return Clear(f"training waits for data {share:.1%} of step time{hidden}")
    cause = _cause(training, loader)
    left = 1 - share * cause.recovered
    return Finding(
        title=f"training waits {share:.0%} of its time for data: {cause.why}",
        share=share,
        expected_speedup=1 / max(left, 1e-3),
        fixes=cause.fixes,
        evidence=_evidence(training, loader),
        where=cause.where,
        stage=cause.stage,
        is_certain=cause.is_certain,
    )


def _lost_ratio(training: Training, loader: Loader) -> float:
    """The part of the waiting in which no device had anything to do."""
    devices = [d for d in device_times(training) if d.rank == loader.rank]
    if not devices:
        return 1.0
    ((waited_ns,),) = training.run.sql(
        "SELECT sum(data_ns) FROM step_times WHERE (rank, step) IN"
        " (SELECT rank, step FROM device_steps WHERE rank = $rank)",
        {"rank": loader.rank},
    ).fetchall()
    return min(1.0, max(d.data_ns for d in devices) / waited_ns) if waited_ns else 1.0


def _cause(training: Training, loader: Loader) -> _Cause:
    lost_ns = max(1, loader.lost_ns)
    if loader.restarts_ns >= MOSTLY_RATIO * lost_ns:
        return _restarts(loader)
    if not loader.works:
        return _by_queues(training, loader) or _unmeasured(training, loader)
    if loader.taking_ns >= MOSTLY_RATIO * lost_ns:
        return _taking(training, loader)
    stage = max(STAGES, key=lambda name: getattr(_mean(loader.works), f"{name}_ns"))
    count, recovered = _workers_that_help(loader)
    if recovered >= CURED_RATIO:
        return _more_workers(training, loader, stage, count, recovered)
    return _slow_stage(training, loader, stage, count)


def _recovered(loader: Loader, after_ns: float) -> float:
    """The part of the waiting that a change ends, by the model; but for that between epochs."""
    before_ns = pipeline_model.run(loader.works, loader.setting()).batch_ns
    waiting_ns = before_ns - loader.setting().training_ns
    return min(1.0, max(0.0, before_ns - after_ns) / waiting_ns) if waiting_ns > 0 else 0.0


def _steady(loader: Loader) -> float:
    """The part of the waiting that is not between epochs."""
    return 1 - loader.restarts_ns / max(1, loader.lost_ns)


def _workers_that_help(loader: Loader) -> tuple[int, float]:
    """As few workers as do nearly as well as any number, and what they recover."""
    now = loader.workers or 0
    outcomes = {
        count: pipeline_model.run(loader.works, loader.setting(count)).batch_ns
        for count in range(now + 1, max(MOST_WORKERS, int(loader.cores)) + 1)
    }
    if not outcomes:
        return now, 0.0
    best = min(outcomes.values())
    count = next(n for n, ns in outcomes.items() if ns <= best * AS_GOOD_RATIO)
    return count, _recovered(loader, outcomes[count])


def _more_workers(
    training: Training, loader: Loader, stage: str, count: int, recovered: float
) -> _Cause:
    """They would end the waiting. Where there are some, too few are the fault; where there is none,
    what takes the time is told."""
    now = loader.workers or 0
    making = _mean(loader.works).all_ns if now else loader.lost_ns / max(1, loader.batches)
    against = f"a batch that training works on for {duration(loader.setting().training_ns)}"
    line = _seen_line(training, loader, stage)
    if now:
        why = f"{_so_many(now)} {'needs' if now == 1 else 'need'} {duration(making)} for {against}"
    else:
        most = _at_line(stage, line)
        why = f"it makes its batches itself, {duration(making)} for {against}; most is {most}"
    fixes = [_workers_fix(loader, count)]
    if loader.settings.get("is_iterable") and count > 1:
        fixes.append(
            "an IterableDataset has to give each worker its own part, or every item comes "
            f"{count} times: in __iter__, by torch.utils.data.get_worker_info()"
        )
    fixes.append(f"or make it quicker{_at(line)}: {_STAGE_FIXES[stage]}")
    recovered *= _steady(loader)
    return _Cause("workers" if now else stage, why, recovered, tuple(fixes), _place(loader))


def _slow_stage(training: Training, loader: Loader, stage: str, count: int) -> _Cause:
    """No number of workers that can be advised would do: the stage has to become quicker."""
    without = [work.without(stage) for work in loader.works]
    after_ns = pipeline_model.run(without, loader.setting()).batch_ns
    spent = getattr(_mean(loader.works), f"{stage}_ns")
    line = _seen_line(training, loader, stage)
    now = loader.workers or 0
    trained = duration(loader.setting().training_ns)
    why = f"{_at_line(stage, line)} takes {duration(spent)} a batch, "
    if now:
        why += f"and {_so_many(now)} cannot keep up with {trained} of training"
    else:
        alone = duration(loader.lost_ns / max(1, loader.batches))
        why += f"of {alone} in which training makes it itself, for {trained} of training"
    fixes = [f"make it quicker{_at(line)}: {_STAGE_FIXES[stage]}"]
    if count > now:
        fixes.append(f"beside that, {_workers_fix(loader, count)}")
    recovered = _recovered(loader, after_ns) * _steady(loader)
    return _Cause(stage, why, recovered, tuple(fixes), line or _place(loader))


def _workers_fix(loader: Loader, count: int) -> str:
    wanted = f"DataLoader(..., num_workers={count}, persistent_workers=True)"
    verb = "reads" if count == 1 else "read"
    return f"{wanted}{_at(_place(loader))}: {_so_many(count)} {verb} ahead while training computes"


def _so_many(workers: int) -> str:
    return "one worker" if workers == 1 else f"{workers} workers"


def _at_line(stage: str, line: str | None) -> str:
    return f"{_STAGE_WORDS[stage]}{_at(line)}"


def _at(line: str | None) -> str:
    return f" at {line}" if line else ""


def _restarts(loader: Loader) -> _Cause:
    """Workers are started anew for every pass over the data."""
    each = duration(loader.restarts_ns / max(1, loader.passes))
    why = f"its {_so_many(loader.workers or 0)} are started anew for every epoch, {each} each time"
    fixes = [f"DataLoader(..., persistent_workers=True){_at(_place(loader))}: the workers stay"]
    if loader.settings.get("start_method") != "fork":
        fixes.append("where it is safe, 'fork' spares them to import everything again")
    recovered = loader.restarts_ns / max(1, loader.lost_ns)
    return _Cause("restarts", why, min(1.0, recovered), tuple(fixes), _place(loader))


def _taking(training: Training, loader: Loader) -> _Cause:
    """Batches lie ready, and still the loop waits: it has to unpack them, or to draw the next."""
    line = _seen_in_waits(training, loader)
    why = (
        f"batches lie ready, but to take one takes {duration(loader.receive_ns)} in the training "
        f"process{_at(line)}: it is unpacked there, and the next one is ordered"
    )
    fixes = (
        f"workers hand over much{_at(_place(loader))}: {_STAGE_FIXES['transfer']}",
        f"a sampler draws the next items in the training process{_at(line)}: draw them quicker",
    )
    recovered = loader.taking_ns / max(1, loader.lost_ns)
    return _Cause("transfer", why, recovered, fixes, line or _place(loader))


def _by_queues(training: Training, loader: Loader) -> _Cause | None:
    """Of a pipeline whose batches were not timed, but perhaps its queues looked at."""
    found = of_library(training, loader) or slowest(training, loader)
    return found and _Cause(found.stage, found.why, found.recovered, found.fixes, found.where)


def _unmeasured(training: Training, loader: Loader) -> _Cause:
    """A trace from elsewhere tells that training waits, and what it computes meanwhile."""
    if _computes_meanwhile(training, loader):
        why = "it makes its batches itself, without workers"
        fix = "DataLoader(..., num_workers=4, persistent_workers=True): workers read ahead"
        return _Cause("workers", why, 1.0, (fix,), None, is_certain=False)
    fix = (
        "record it with strobe run train.py: it times every batch inside the loader, and tells "
        "whether reading, transforming or too few workers is the reason"
        if training.is_imported
        else "give its operations more workers, num_parallel_workers, and record longer: where "
        "training waits, its pipeline is looked into"
    )
    return _Cause(None, "batches come too late", 1.0, (fix,), _place(loader), is_certain=False)


def _computes_meanwhile(training: Training, loader: Loader) -> bool:
    """Whether operators run inside most waits: those that make a batch, item by item."""
    ((inside,),) = training.run.sql(
        """
        SELECT count(*) FROM (
            SELECT w.id FROM events e
            JOIN tracks t ON t.id = e.track_id
            ASOF JOIN (FROM data_waits WHERE loader = $loader) w
                ON w.rank = t.rank AND w.ts_ns <= e.ts_ns
            WHERE e.kind = 'op' AND t.rank = $rank AND e.ts_ns < w.end_ns
            GROUP BY w.id HAVING count(*) >= $enough
        )
        """,
        {"rank": loader.rank, "loader": loader.number, "enough": MAKING_OPERATORS},
    ).fetchall()
    return bool(inside >= MOSTLY_RATIO * len(loader.waits["ts_ns"]))


def _without_loader(training: Training) -> Verdict:
    if training.is_imported:
        return CannotTell(
            "the trace has no waits for data",
            "record with strobe run train.py, which sees every data loader",
        )
    between = float(training.steps["gap_ns"].sum()) / max(1, training.total_ns)
    if between < WORTH_TELLING_RATIO:
        return Clear(f"no data loader was seen, and {between:.1%} of step time lies between steps")
    source = plain_source(training)
    if source is None:
        return CannotTell(
            "no data loader was seen, and training was not looked at often enough",
            f"record longer, without --no-samples; or use {LOADERS[training.framework]}",
        )
    if source.share < WORTH_TELLING_RATIO:
        return Clear(f"making batches takes {source.share:.1%} of step time")
    kind = "waits" if source.stage == "reading" else "computes"
    return Finding(
        title=f"training {kind} {source.share:.0%} of its time for data that it makes itself, "
        f"most at {source.where}",
        share=source.share,
        expected_speedup=1 / max(1e-3, 1 - source.share),
        fixes=(
            f"{source.where} in {source.function}: make batches ahead, while training computes: "
            f"with {LOADERS[training.framework]}, or a thread that fills a queue.Queue",
        ),
        evidence=(Evidence("samples", source.rows),),
        where=source.where,
        stage=source.stage,
        is_certain=False,
    )


def _mean(works: Sequence[Work]) -> Work:
    count = max(1, len(works))
    names = (*STAGES, "others")
    return Work(*(sum(getattr(w, f"{name}_ns") for w in works) / count for name in names))


def _place(loader: Loader) -> str | None:
    return str(loader.line) if loader.line else None


# Looks at a worker, or at the training thread, while a batch was fetched or collated.
_SEEN = """
    SELECT s.place FROM (FROM samples WHERE {thread} AND rank = $rank AND place IS NOT NULL) s
    ASOF JOIN (FROM batches WHERE loader = $loader AND {maker}) b
        ON b.rank = s.rank AND b.ts_ns <= s.ts_ns
    WHERE {when} GROUP BY s.place ORDER BY count(*) DESC, s.place LIMIT 1
"""
_SEEN_IN_WAITS = """
    SELECT s.place FROM (
        FROM samples WHERE thread = 'training' AND rank = $rank AND place IS NOT NULL
    ) s
    ASOF JOIN (FROM data_waits WHERE loader = $loader) w
        ON w.rank = s.rank AND w.ts_ns <= s.ts_ns
    WHERE s.ts_ns < w.end_ns GROUP BY s.place ORDER BY count(*) DESC, s.place LIMIT 1
"""


def _seen_line(training: Training, loader: Loader, stage: str) -> str | None:
    """The user's line at which the making of batches was seen most often."""
    ours = f"thread LIKE 'data worker % of loader {loader.number}'"
    query = _SEEN.format(
        thread=ours if loader.workers else "thread = 'training'",
        maker="true" if loader.workers else "worker = -1",
        when="s.ts_ns BETWEEN b.ts_ns + b.fetch_ns AND b.ts_ns + b.fetch_ns + b.collate_ns"
        if stage == "collate"
        else "s.ts_ns < b.ts_ns + b.fetch_ns",
    )
    return _first(training, loader, query)


def _seen_in_waits(training: Training, loader: Loader) -> str | None:
    return _first(training, loader, _SEEN_IN_WAITS)


def _first(training: Training, loader: Loader, query: str) -> str | None:
    found = {"rank": loader.rank, "loader": loader.number}
    rows = training.run.sql(query, found).fetchall()
    return str(rows[0][0]) if rows else None


def _evidence(training: Training, loader: Loader) -> tuple[Evidence, ...]:
    relation = data_pipeline.run(training.run)
    rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    stages = tuple(r for r in rows if r["rank"] == loader.rank and r["loader"] == loader.number)
    found = [Evidence("events", longest_waits(training, loader))]
    return (Evidence("data-pipeline", stages), *found) if stages else tuple(found)
