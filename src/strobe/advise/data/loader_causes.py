"""Why batches are late: which part of a data loader takes the time, and what would help."""

from collections.abc import Sequence

from strobe.advise.data import pipeline_model
from strobe.advise.data.cause import Cause, at_line
from strobe.advise.data.library_iterator import of_library
from strobe.advise.data.loader import Loader
from strobe.advise.data.loader_restarts import recreated, restarted
from strobe.advise.data.pipeline_model import Work
from strobe.advise.data.queue_pipeline import slowest
from strobe.advise.fixes import fix
from strobe.advise.training import Training
from strobe.units import duration

# More workers are the first fix if they end this much of the waiting. Reads overlap well. Where
# batches are computed, workers and training compete for the same cores, so they must gain more
# before they come ahead of making the work itself cheaper.
CURED_READING_RATIO = 0.4
CURED_RATIO = 0.6

# An item that takes less is looked up rather than computed: what it costs is Python's overhead per
# item, once in __getitem__ and once in the collate function.
CHEAP_ITEM_NS = 20_000
FEWEST_ITEMS = 32

# A number of workers that is this close to the best is as good, and costs less memory.
AS_GOOD_RATIO = 1.03

# If this much of the waiting is at the boundaries of epochs, or with batches ready, that is it.
MOSTLY_RATIO = 0.5

# What a stage still takes once it is rewritten, as part of what it took: at best, as a rule, at
# worst.
REWRITTEN_RATIO = 0.1
REWRITTEN_RATIOS = (0.02, REWRITTEN_RATIO, 0.4)

# To unpack a batch from a worker takes an operator or two for each of its tensors; to build one
# takes several for each item.
MAKING_OPERATORS = 20

STAGES = ("reading", "transform", "collate", "transfer")

_STAGE_WORDS = {
    "reading": "reading (waiting for a disk, a network or another process)",
    "transform": "computing the items",
    "collate": "collating the items",
    "transfer": "moving batches between processes",
}

STAGE_FIXES = {
    "reading": "Keep what is read again in memory, and store many small files as few large ones",
    "transform": "Vectorize it, and cache anything that does not change between epochs",
    "collate": "Stack tensors in one call (torch.stack, torch.nn.utils.rnn.pad_sequence) instead "
    "of looping over values",
    "transfer": "Return tensors instead of lists of Python objects, as small as possible (uint8 "
    "images, converted after the transfer)",
}

# What may be recovered where nothing is known but the waits: the middle, and the bounds.
_AT_LEAST = 0.5

_UNMEASURED = (0.0, 0.9)

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


def cause_of(training: Training, loader: Loader) -> Cause:
    lost_ns = max(1, loader.lost_ns)
    if loader.is_recreated and (cause := recreated(loader)) is not None:
        return cause
    if loader.restarts_ns >= MOSTLY_RATIO * lost_ns:
        return restarted(loader)
    if not loader.works:
        return _by_queues(training, loader) or _unmeasured(training, loader)
    if loader.taking_ns >= MOSTLY_RATIO * lost_ns:
        return _taking(training, loader)
    if _is_looked_up(loader):
        return _item_by_item(training, loader)
    stage = max(STAGES, key=lambda name: getattr(_mean(loader.works), f"{name}_ns"))
    count, recovered = _workers_that_help(loader)
    if recovered >= (CURED_READING_RATIO if stage == "reading" else CURED_RATIO):
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
    """As few workers as do nearly as well as any number up to one per core, and what they
    recover."""
    now = loader.workers or 0
    outcomes = {
        count: pipeline_model.run(loader.works, loader.setting(count)).batch_ns
        + _first_batch_ns(loader, count)
        for count in range(now + 1, max(1, int(loader.cores)) + 1)
    }
    if not outcomes:
        return now, 0.0
    best = min(outcomes.values())
    count = next(n for n, ns in outcomes.items() if ns <= best * AS_GOOD_RATIO)
    return count, _recovered(loader, outcomes[count])


def _first_batch_ns(loader: Loader, workers: int) -> float:
    """Workers cannot prepare the first batch of an epoch in advance: what that takes per batch."""
    if not workers or loader.workers:  # with workers, those waits are not counted as avoidable
        return 0.0
    return _mean(loader.works).all_ns * loader.passes / max(1, loader.batches)


def _more_workers(
    training: Training, loader: Loader, stage: str, count: int, recovered: float
) -> Cause:
    """They would end the waiting. Where there are some, there are too few; where there is none, the
    stage that takes the time is named."""
    now = loader.workers or 0
    trained = duration(loader.trained_ns / max(1, loader.batches))
    line = _seen_line(training, loader, stage)
    if now:
        making = duration(_mean(loader.works).all_ns)
        need = "needs" if now == 1 else "need"
        why = f"{_workers(now)} {need} {making} to build a batch, and training needs {trained}"
    else:
        making = duration(loader.waited_ns / max(1, loader.batches))
        why = (
            f"Batches are built in the training process: {making} to load, {trained} to train on; "
            f"most of that is {_stage_at(stage, line)}"
        )
    fixes = [_workers_fix(loader, count)]
    if loader.settings.get("is_iterable") and count > 1:
        fixes.append(
            "An IterableDataset must give each worker its own part, or every item comes "
            f"{count} times: use torch.utils.data.get_worker_info() in __iter__"
        )
    fixes.append(f"{STAGE_FIXES[stage]}{at_line(line)}")
    recovered *= _steady(loader)
    return Cause("workers" if now else stage, why, recovered, tuple(fixes), loader.place)


def _slow_stage(training: Training, loader: Loader, stage: str, count: int) -> Cause:
    """As many workers as there are cores would not do: the stage has to become faster."""
    worst, usual, best = _rewritten(loader, stage)
    spent = duration(getattr(_mean(loader.works), f"{stage}_ns"))
    line = _seen_line(training, loader, stage)
    now = loader.workers or 0
    trained = duration(loader.trained_ns / max(1, loader.batches))
    what = _stage_at(stage, line)
    if now:
        why = (
            f"{_first_upper(what)} takes {spent} per batch, and {_workers(now)} cannot keep up "
            f"with {trained} of training"
        )
    else:
        making = duration(loader.waited_ns / max(1, loader.batches))
        why = (
            f"Batches are built in the training process: {making} to load, {trained} to train on; "
            f"{what} takes {spent} of it"
        )
    fixes = [f"{STAGE_FIXES[stage]}{at_line(line)}"]
    if count > now:
        fixes.append(f"Also: {_workers_fix(loader, count)}")
    where = line or loader.place
    return Cause(stage, why, usual, tuple(fixes), where, 0.0, (worst, best))


def _rewritten(loader: Loader, *stages: str) -> tuple[float, float, float]:
    """The part of the waiting that ends once these stages are rewritten: at worst, as a rule, at
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
    line = _seen_line(training, loader, "transform")
    why = (
        f"Each of the {items} items of a batch is looked up in "
        f"{duration(mean.transform_ns / items)} and collated in "
        f"{duration(mean.collate_ns / items)}, one by one, {duration(mean.all_ns)} per batch; "
        f"training needs {duration(loader.trained_ns / max(1, loader.batches))}"
    )
    fixes = (
        f"Get a whole batch in one call{at_line(loader.place)}: DataLoader(dataset, "
        f"sampler=BatchSampler(RandomSampler(dataset), {items}, drop_last=False), batch_size=None) "
        "calls __getitem__ with all indices of a batch, which tensors and arrays answer at once",
        f"{STAGE_FIXES['transform']}{at_line(line)}",
    )
    where = loader.place or line
    return Cause("transform", why, usual, fixes, where, 0.0, (worst, best))


def _workers_fix(loader: Loader, count: int) -> str:
    is_kept = loader.settings.get("persistent_workers")
    keep = "" if is_kept else ", persistent_workers=True"
    return f"Set num_workers={count}{keep} on the DataLoader{at_line(loader.place)}"


def _workers(count: int) -> str:
    return "One worker" if count == 1 else f"{count} workers"


def _stage_at(stage: str, line: str | None) -> str:
    return f"{_STAGE_WORDS[stage]}{at_line(line)}"


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _taking(training: Training, loader: Loader) -> Cause:
    """Batches are ready, and still the loop waits: it unpacks them, or draws the next indices."""
    line = _seen_in_waits(training, loader)
    why = (
        f"Batches are ready, but receiving one takes {duration(loader.receive_ns)} in the training "
        f"process{at_line(line)}: unpacking it, and requesting the next one"
    )
    fixes = (
        f"{STAGE_FIXES['transfer']}{at_line(loader.place)}",
        f"If the sampler is slow, draw its indices faster{at_line(line)}",
    )
    ratio = loader.taking_ns / max(1, loader.lost_ns)
    best, usual, worst = (ratio * (1 - left) for left in REWRITTEN_RATIOS)
    where = line or loader.place
    return Cause("transfer", why, usual, fixes, where, 0.0, (worst, best))


def _by_queues(training: Training, loader: Loader) -> Cause | None:
    """Of a pipeline whose batches were not timed, but whose queues may have been sampled."""
    found = of_library(training, loader) or slowest(training, loader)
    return found and Cause(found.stage, found.why, found.recovered, found.fixes, found.where)


def _unmeasured(training: Training, loader: Loader) -> Cause:
    """Only the waits are known: of a trace from elsewhere, or of an unknown kind of loader."""
    if training.is_imported and _computes_meanwhile(training, loader):
        why = "Batches are built in the training process, without workers"
        advice = f"Use {fix('loader', training.framework)}: workers prepare batches in advance"
        return Cause("workers", why, _AT_LEAST, (advice,), None, 0.0, _UNMEASURED)
    unseen = loader.settings.get("workers_unseen")
    because = f" ({unseen})" if unseen else ""
    why = f"Batches are not ready in time; the inside of the data loader was not recorded{because}"
    if training.is_imported:
        advice = (
            "Record it with strobe run train.py, which times every batch inside the loader and "
            "says whether reading, transforming or too few workers is the reason"
        )
        return Cause(None, why, _AT_LEAST, (advice,), loader.place, 0.0, _UNMEASURED)
    now, cores = loader.workers, int(loader.cores)
    if now is not None and now < cores:
        made_ns = loader.step_ns if now else loader.waited_ns / max(1, loader.steps)
        recovered = loader.recovered_by(made_ns, cores / max(1, now), computes=False)
        advice = _workers_fix(loader, cores)
        return Cause(None, why, recovered, (advice,), loader.place, 0.0, (0.0, recovered))
    at = at_line(loader.place)
    advice = f"Make the dataset faster{at}: vectorize it, cache what does not change"
    return Cause(None, why, _AT_LEAST, (advice,), loader.place, 0.0, _UNMEASURED)


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


def _mean(works: Sequence[Work]) -> Work:
    count = max(1, len(works))
    names = (*STAGES, "others")
    return Work(*(sum(getattr(w, f"{name}_ns") for w in works) / count for name in names))


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
