"""Why batches are late: which part of a data loader takes the time, and what would help."""

from collections.abc import Sequence

from strobe.advise.data import pipeline_model
from strobe.advise.data.cause import Cause
from strobe.advise.data.library_iterator import of_library
from strobe.advise.data.loader import Loader
from strobe.advise.data.loader_restarts import recreated, restarted
from strobe.advise.data.pipeline_model import Work
from strobe.advise.data.queue_pipeline import slowest
from strobe.advise.fixes import at_line, fix
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import count, duration

# More workers are the first fix if they remove at least this part of the waiting. Reads overlap
# well. Workers that compute compete with training for the cores, so they must gain more before they
# come ahead of making the work itself cheaper.
WORKERS_FIRST_READING_RATIO = 0.4
WORKERS_FIRST_RATIO = 0.6

# An item that takes less is looked up rather than computed: its cost is Python's overhead per item,
# once in __getitem__ and once in the collate function.
CHEAP_ITEM_NS = 20_000
FEWEST_ITEMS = 32

# If fewer workers come this close to the best number, they are as good, and need less memory.
AS_GOOD_RATIO = 1.03

# A cause that accounts for this part of the waiting is the one that is reported: restarts between
# epochs, or receiving batches that are ready.
MOSTLY_RATIO = 0.5

# What a stage still takes once it is rewritten, as part of what it took: at best, usually, at
# worst.
REWRITTEN_RATIO = 0.1
REWRITTEN_RATIOS = (0.02, REWRITTEN_RATIO, 0.4)

# To unpack a batch from a worker takes an operator or two per tensor. To build one takes several
# per item.
MAKING_OPERATORS = 20

STAGES = ("reading", "transform", "collate", "transfer")

# Messages that say how to make a stage faster.
_STAGE_FIXES = {
    "reading": "data-starvation.fix-reading", "transform": "data-starvation.fix-transform",
    "transfer": "data-starvation.fix-transfer",
}  # fmt: skip

# What may be recovered where only the waits are known: in the middle, and at least and at most.
_UNMEASURED = 0.5
_UNMEASURED_RANGE = (0.0, 0.9)

# The line that was sampled most often in a worker, or in the training thread, while a batch was
# fetched or collated.
_LINE_OF_STAGE = """
    SELECT s.place FROM (FROM samples WHERE {thread} AND rank = $rank AND place IS NOT NULL) s
    ASOF JOIN (FROM batches WHERE loader = $loader AND {maker}) b
        ON b.rank = s.rank AND b.ts_ns <= s.ts_ns
    WHERE {when} GROUP BY s.place ORDER BY count(*) DESC, s.place LIMIT 1
"""

_LINE_IN_WAITS = """
    SELECT s.place FROM (
        FROM samples WHERE thread = 'training' AND rank = $rank AND place IS NOT NULL
    ) s
    ASOF JOIN (FROM data_waits WHERE loader = $loader) w
        ON w.rank = s.rank AND w.ts_ns <= s.ts_ns
    WHERE s.ts_ns < w.end_ns GROUP BY s.place ORDER BY count(*) DESC, s.place LIMIT 1
"""


def cause_of(training: Training, loader: Loader) -> Cause:
    lost_ns = max(1, loader.lost_ns)
    if loader.is_recreated and (cause := recreated(loader)) is not None:
        return cause
    if loader.restarts_ns >= MOSTLY_RATIO * lost_ns:
        return restarted(training, loader)
    if not loader.works:
        return _by_queues(training, loader) or _unmeasured(training, loader)
    if loader.receiving_ns >= MOSTLY_RATIO * lost_ns:
        return _slow_receiving(training, loader)
    if _is_looked_up(loader):
        return _item_by_item(training, loader)
    stage = max(STAGES, key=lambda name: getattr(_mean(loader.works), f"{name}_ns"))
    workers, recovered = _workers_that_help(loader)
    enough = WORKERS_FIRST_READING_RATIO if stage == "reading" else WORKERS_FIRST_RATIO
    if recovered >= enough:
        return _more_workers(training, loader, stage, workers, recovered)
    return _slow_stage(training, loader, stage, workers)


def _recovered(loader: Loader, after_ns: float) -> float:
    """The part of the waiting that a change removes, by the model, which has no waits between
    epochs."""
    before_ns = pipeline_model.run(loader.works, loader.setting()).batch_ns
    waiting_ns = before_ns - loader.setting().training_ns
    return min(1.0, max(0.0, before_ns - after_ns) / waiting_ns) if waiting_ns > 0 else 0.0


def _steady(loader: Loader) -> float:
    """The part of the waiting that is not between epochs."""
    return 1 - loader.restarts_ns / max(1, loader.lost_ns)


def _workers_that_help(loader: Loader) -> tuple[int, float]:
    """The smallest number of workers that does nearly as well as any number up to one per core,
    and what it recovers."""
    now = loader.workers or 0
    outcomes = {
        workers: pipeline_model.run(loader.works, loader.setting(workers)).batch_ns
        + _first_batch_ns(loader, workers)
        for workers in range(now + 1, max(1, int(loader.cores)) + 1)
    }
    if not outcomes:
        return now, 0.0
    best = min(outcomes.values())
    fewest = next(n for n, ns in outcomes.items() if ns <= best * AS_GOOD_RATIO)
    return fewest, _recovered(loader, outcomes[fewest])


def _first_batch_ns(loader: Loader, workers: int) -> float:
    """Per batch, the time for the first batches of epochs: workers cannot prepare those in
    advance."""
    if not workers or loader.workers:  # with workers, those waits are not counted as avoidable
        return 0.0
    return _mean(loader.works).all_ns * loader.passes / max(1, loader.batches)


def _more_workers(
    training: Training, loader: Loader, stage: str, workers: int, recovered: float
) -> Cause:
    """They would remove the waiting. If there are some, there are too few; if there are none, the
    stage that takes the time is named."""
    now = loader.workers or 0
    trained = _trained(loader)
    line = _line_of_stage(training, loader, stage)
    if now:
        id = "one-worker-too-few" if now == 1 else "workers-too-few"
        making = duration(_mean(loader.works).all_ns)
        why = message(f"data-starvation.{id}", workers=now, making=making, trained=trained)
    else:
        why = message(
            "data-starvation.built-in-training-process",
            making=_made_by_training(loader),
            trained=trained,
            stage=message(f"data-starvation.{stage}"),
            at=at_line(line),
        )
    fixes = [_workers_fix(training, loader, workers)]
    if loader.settings.get("is_iterable") and workers > 1:
        fixes.append(fix("split-iterable", training.framework, count=workers))
    fixes.append(stage_fix(training, stage, line))
    recovered *= _steady(loader)
    return Cause("workers" if now else stage, why, recovered, tuple(fixes), loader.place)


def _slow_stage(training: Training, loader: Loader, stage: str, workers: int) -> Cause:
    """As many workers as there are cores would not be enough: the stage has to become faster."""
    worst, usual, best = _rewritten(loader, stage)
    line = _line_of_stage(training, loader, stage)
    now = loader.workers or 0
    values = {
        "spent": duration(getattr(_mean(loader.works), f"{stage}_ns")),
        "stage": message(f"data-starvation.{stage}"),
        "at": at_line(line),
        "trained": _trained(loader),
    }
    if now:
        id = "slow-stage-in-worker" if now == 1 else "slow-stage-in-workers"
        why = message(f"data-starvation.{id}", workers=now, **values)
    else:
        why = message(
            "data-starvation.slow-stage-in-training-process",
            making=_made_by_training(loader),
            **values,
        )
    fixes = [stage_fix(training, stage, line)]
    if workers > now:
        fixes.append(_workers_fix(training, loader, workers, also="also-"))
    where = line or loader.place
    return Cause(stage, why, usual, tuple(fixes), where, 0.0, (worst, best))


def _rewritten(loader: Loader, *stages: str) -> tuple[float, float, float]:
    """The part of the waiting that goes away once these stages are rewritten: at worst, usually, at
    best."""
    best, usual, worst = (
        _recovered(loader, _after_rewriting_ns(loader, stages, ratio)) * _steady(loader)
        for ratio in REWRITTEN_RATIOS
    )
    return worst, usual, best


def _after_rewriting_ns(loader: Loader, stages: Sequence[str], ratio: float) -> float:
    works = list(loader.works)
    for stage in stages:
        works = [work.scaled(stage, ratio) for work in works]
    return pipeline_model.run(works, loader.setting()).batch_ns


def _is_looked_up(loader: Loader) -> bool:
    """Whether the items are in memory, and the time goes into fetching them one by one."""
    items = loader.settings.get("batch_size") or 0
    if items < FEWEST_ITEMS or loader.settings.get("is_iterable"):
        return False
    if loader.settings.get("collate_fn") != "default_collate":
        return False
    mean = _mean(loader.works)
    on_core = mean.transform_ns + mean.collate_ns
    return on_core >= MOSTLY_RATIO * mean.all_ns and mean.transform_ns <= CHEAP_ITEM_NS * items


def _item_by_item(training: Training, loader: Loader) -> Cause:
    """Items that are in memory are fetched and collated one by one."""
    items = loader.settings["batch_size"]
    mean = _mean(loader.works)
    worst, usual, best = _rewritten(loader, "transform", "collate")
    line = _line_of_stage(training, loader, "transform")
    why = message(
        "data-starvation.item-by-item",
        items=count(items),
        looking_up=duration(mean.transform_ns / items),
        collating=duration(mean.collate_ns / items),
        making=duration(mean.all_ns),
        trained=_trained(loader),
    )
    fixes = (
        message("data-starvation.fetch-whole-batches", items=items, at=at_line(loader.place)),
        stage_fix(training, "transform", line),
    )
    where = loader.place or line
    return Cause("transform", why, usual, fixes, where, 0.0, (worst, best))


def stage_fix(training: Training, stage: str, line: str | None) -> Message:
    """How to make a stage faster."""
    if stage == "collate":
        return fix("faster-collate", training.framework, line)
    return message(_STAGE_FIXES[stage], at=at_line(line))


def _workers_fix(training: Training, loader: Loader, workers: int, also: str = "") -> Message:
    is_kept = loader.settings.get("persistent_workers")
    id = f"{also}set-workers" if is_kept else f"{also}set-persistent-workers"
    return fix(id, training.framework, loader.place, count=workers)


def _trained(loader: Loader) -> str:
    """How long training works on a batch."""
    return duration(loader.trained_ns / max(1, loader.batches))


def _made_by_training(loader: Loader) -> str:
    """How long the training process itself takes to build a batch."""
    return duration(loader.waited_ns / max(1, loader.batches))


def _slow_receiving(training: Training, loader: Loader) -> Cause:
    """Batches are ready, but the loop still waits: it unpacks them, or draws the next indices."""
    line = _line_in_waits(training, loader)
    why = message(
        "data-starvation.receiving-is-slow",
        receiving=duration(loader.receive_ns),
        at=at_line(line),
    )
    fixes = (
        stage_fix(training, "transfer", loader.place),
        message("data-starvation.faster-sampler", at=at_line(line)),
    )
    ratio = loader.receiving_ns / max(1, loader.lost_ns)
    best, usual, worst = (ratio * (1 - left) for left in REWRITTEN_RATIOS)
    where = line or loader.place
    return Cause("transfer", why, usual, fixes, where, 0.0, (worst, best))


def _by_queues(training: Training, loader: Loader) -> Cause | None:
    """Of a pipeline whose batches were not timed, but whose queues may have been sampled."""
    found = of_library(training, loader) or slowest(training, loader)
    return found and Cause(found.stage, found.why, found.recovered, found.fixes, found.where)


def _unmeasured(training: Training, loader: Loader) -> Cause:
    """Only the waits are known: of an imported trace, or of an unknown kind of loader."""
    recovered, bounds, place = _UNMEASURED, _UNMEASURED_RANGE, loader.place
    if training.is_imported and _computes_meanwhile(training, loader):
        why = message("data-starvation.built-without-workers")
        advice = fix("loader", training.framework)
        return Cause("workers", why, recovered, (advice,), None, 0.0, bounds)
    why = _why_unmeasured(loader)
    now, cores = loader.workers, int(loader.cores)
    if training.is_imported:
        advice = message("data-starvation.record-loader")
    elif now is not None and now < cores:
        made_ns = loader.step_ns if now else loader.waited_ns / max(1, loader.steps)
        recovered = loader.recovered_by(made_ns, cores / max(1, now), computes=False)
        bounds = (0.0, recovered)
        advice = _workers_fix(training, loader, cores)
    else:
        advice = message("data-starvation.faster-dataset", at=at_line(place))
    return Cause(None, why, recovered, (advice,), place, 0.0, bounds)


def _why_unmeasured(loader: Loader) -> Message:
    if reason := loader.settings.get("workers_unseen"):
        return message("data-starvation.inside-unknown-because", reason=reason)
    return message("data-starvation.inside-unknown")


def _computes_meanwhile(training: Training, loader: Loader) -> bool:
    """Whether most waits contain the operators that build a batch, item by item."""
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


def _mean(works: Sequence[Work]) -> Work:
    batches = max(1, len(works))
    names = (*STAGES, "others")
    return Work(*(sum(getattr(w, f"{name}_ns") for w in works) / batches for name in names))


def _line_of_stage(training: Training, loader: Loader, stage: str) -> str | None:
    """The user's line that was sampled most often in a stage of building batches."""
    workers = f"thread LIKE 'data worker % of loader {loader.number}'"
    query = _LINE_OF_STAGE.format(
        thread=workers if loader.workers else "thread = 'training'",
        maker="true" if loader.workers else "worker = -1",
        when="s.ts_ns BETWEEN b.ts_ns + b.fetch_ns AND b.ts_ns + b.fetch_ns + b.collate_ns"
        if stage == "collate"
        else "s.ts_ns < b.ts_ns + b.fetch_ns",
    )
    return _first_place(training, loader, query)


def _line_in_waits(training: Training, loader: Loader) -> str | None:
    """The user's line that was sampled most often while the training thread waited for data."""
    return _first_place(training, loader, _LINE_IN_WAITS)


def _first_place(training: Training, loader: Loader, query: str) -> str | None:
    values = {"rank": loader.rank, "loader": loader.number}
    rows = training.run.sql(query, values).fetchall()
    return str(rows[0][0]) if rows else None
