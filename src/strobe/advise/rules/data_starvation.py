"""Training waits for data.

## What it is
The training loop asks for the next batch, and it is not ready. While it waits, nothing is computed.
The reason is one of these, which `stage` names:

- `reading`: getting the items waits for a disk, a network, a database;
- `transform`: getting the items computes: decoding, augmenting, tokenizing;
- `collate`: turning the items into one batch takes long;
- `transfer`: moving batches from a worker to the training process takes long;
- `workers`: there are workers, but too few of them;
- `restarts`: the workers are restarted for every epoch. What that slows the first step of an
  epoch by counts too;
- `acting`: the model collects its data in an environment, as in reinforcement learning.

## How it is judged
Every wait of the loop is measured, and the share is the one that the table `step-statistics` and
the summary show: waiting as part of the time of the steps counted. What can be avoided may be less:
where a device computes meanwhile, only the part in which it ran out of work; where a batch was
ready, only what it took to receive it; with workers, not the first batch of an epoch. Inside the
loader every batch is timed: time off the processor is reading, time on it is transform. A small
model of the pipeline (workers, queue, training, the cores they share) is run with these times and
with more workers, up to one per core of the machine that was recorded. If that ends a good part of
the waiting, the smallest number that does is the first fix. If not, the stage that takes longest
has to become faster, and the line of the dataset at which it was sampled most often is named.

For MindSpore's datasets the queues between operations are sampled: an operation with a full queue
before it and an empty one after it is the slow one. The gain is that of the number of workers that
is advised: a step cannot become shorter than one that found its batch ready.

A loop without a data loader is judged by samples of what Python was doing before the forward pass.

The gain is that of the first fix. Where it depends on how fast the new code is, a range is given: a
stage that is rewritten is assumed to keep between a fiftieth and two fifths of its time.

## How to fix
`DataLoader(..., num_workers=2, persistent_workers=True)` prepares batches while training computes.
Reading: keep what is read again in memory, store many small files as few large ones. Transform and
collate: vectorize, and cache what is the same in every epoch. Transfer: return tensors instead of
lists of Python objects, and move less. In MindSpore each operation has workers of its own:
`dataset.map(..., num_parallel_workers=2)`. In JAX, grain has processes (`worker_count`,
`mp_prefetch`), tf.data threads (`prefetch`, `num_parallel_calls`).
"""

from strobe.advise.data.cause import at_line
from strobe.advise.data.loader import Loader, loaders, longest_waits
from strobe.advise.data.loader_causes import REWRITTEN_RATIO, STAGE_FIXES, cause_of
from strobe.advise.data.pipeline_without_steps import pipeline_alone
from strobe.advise.data.plain_source import PlainSource, plain_source
from strobe.advise.evidence.device_model import device_times
from strobe.advise.evidence.side_work import ROLLOUT_FIX, ROLLOUT_RANGE, is_rollout
from strobe.advise.finding import CannotTell, Clear, Evidence, Figure, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.training import Training
from strobe.analyse.tables.data import data_pipeline
from strobe.units import percent

NAME = "data-starvation"
NEEDS_STEPS = False  # the queues of a pipeline show its slowest operation without them

# Below this share the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05


def check(training: Training) -> Verdict:
    if not training.step_count:
        return pipeline_alone(training)
    found = loaders(training)
    if not found:
        return _without_loader(training)
    loader = found[0]
    measured = _measured_ratio(training, loader)
    on_device = _lost_ratio(training, loader)
    share = min(1.0, on_device * _avoidable_ratio(loader) * measured)
    if share < WORTH_TELLING_RATIO:
        hidden = ", the rest while a device computes" if on_device < 1 else ""
        return Clear(f"training waits for data {percent(share)} of step time{hidden}")
    cause = cause_of(training, loader)
    return Finding(
        title=_title(training, loader, measured, share, on_device),
        why=f"{cause.why}.",
        share=min(0.99, share + cause.beyond),
        expected_speedup=_speedup(share * cause.recovered + cause.beyond),
        speedup_range=cause.recovered_range
        and (
            _speedup(share * cause.recovered_range[0]),
            _speedup(share * cause.recovered_range[1]),
        ),
        fixes=cause.fixes,
        evidence=_evidence(training, loader),
        where=cause.where,
        stage=cause.stage,
        is_certain=cause.is_certain,
        derivation=_derivation(training, loader, measured, share, on_device, cause.beyond),
    )


def _avoidable_ratio(loader: Loader) -> float:
    """The part of the waiting that a user can do something about."""
    return loader.avoidable_ns / max(1, loader.waited_ns)


def _measured_ratio(training: Training, loader: Loader) -> float:
    """The waiting for data of the loader's rank, as `step-statistics` has it."""
    mine = training.steps["rank"] == loader.rank
    return float(training.steps["data_ns"][mine].sum()) / max(1.0, loader.total_ns)


def _speedup(saved: float) -> float:
    return 1 / max(1 - saved, 1e-2)


def _title(
    training: Training, loader: Loader, measured: float, share: float, on_device: float
) -> str:
    who = f"Rank {loader.rank}" if len(training.ranks) > 1 else "Training"
    title = f"{who} spends {percent(measured)} of its time waiting for data"
    if percent(share) == percent(measured):
        return title
    if on_device < 1:
        return f"{title}; meanwhile the device is idle for {percent(share)}"
    return f"{title}; {percent(share)} can be avoided"


def _derivation(
    training: Training, loader: Loader, measured: float, share: float, on_device: float,
    beyond: float,
) -> tuple[Figure, ...]:  # fmt: skip
    ((recorded,),) = training.run.sql(
        "SELECT count(*) FROM step_times WHERE rank = $rank", {"rank": loader.rank}
    ).fetchall()
    figures = [
        Figure("recorded", recorded, "steps"),
        Figure("counted", loader.steps, "steps"),
        Figure("per step", loader.step_ns, "ns"),
        Figure("per step waiting for data", measured * loader.step_ns, "ns"),
        Figure("of step time waiting for data", measured, "ratio"),
    ]
    if on_device < 1:
        figures.append(Figure("of the waiting while the device is idle", on_device, "ratio"))
    if (avoidable := _avoidable_ratio(loader)) < 1:
        figures.append(Figure("of the waiting can be avoided", avoidable, "ratio"))
    if beyond:
        figures.append(Figure("of step time in slow first steps of epochs", beyond, "ratio"))
    if percent(share + beyond) != percent(measured):
        figures.append(Figure("of step time is the cost", share + beyond, "ratio"))
    return tuple(figures)


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


def _without_loader(training: Training) -> Verdict:
    if training.is_imported:
        return CannotTell(
            "the trace has no waits for data",
            "record with strobe run train.py, which sees every data loader",
        )
    between = float(training.steps["gap_ns"].sum()) / max(1, training.total_ns)
    if between < WORTH_TELLING_RATIO:
        return Clear(
            f"there is no data loader, and {percent(between)} of step time is between steps"
        )
    source = plain_source(training)
    background = fix("loader", training.framework)
    if source is None:
        return CannotTell(
            "there is no data loader, and too few samples were taken",
            f"record longer, without --no-samples; or use {background}",
        )
    if source.share < WORTH_TELLING_RATIO:
        return Clear(f"preparing batches takes {percent(source.share)} of step time")
    if is_rollout(training):
        return _acting(source)
    verb = "waiting for" if source.stage == "reading" else "computing"
    in_function = f" ({source.function})" if source.function else ""
    # Prepared in the background, it overlaps with training, which is all that is left then.
    left = max(1 - source.share, source.share if source.stage == "reading" else 0.5)
    background_fix = (
        f"Prepare batches in the background while training computes{at_line(source.where)}: "
        f"use {background}, or a thread that fills a queue.Queue"
    )
    fixes = [background_fix]
    # Computing as long as training does or longer keeps a core busy all the time: it must shrink.
    cheaper_left = 1 - source.share * (1 - REWRITTEN_RATIO)
    if source.stage == "transform":
        fixes.append(f"{STAGE_FIXES['transform']}{at_line(source.where)}")
        if cheaper_left < left:
            left = cheaper_left
            fixes.reverse()
    return Finding(
        title=f"Training spends {percent(source.share)} of its time {verb} data in the training "
        "loop",
        why=f"Most samples before the forward pass are at {source.where}{in_function}.",
        share=source.share,
        expected_speedup=1 / left,
        fixes=tuple(fixes),
        evidence=(Evidence("samples", source.rows),),
        where=source.where,
        stage=source.stage,
        is_certain=False,
    )


def _acting(source: PlainSource) -> Finding:
    """The data is what a model experiences: it cannot be prepared without the model."""
    least, most = ROLLOUT_RANGE
    return Finding(
        title=f"The model acts in an environment for {percent(source.share)} of step time",
        why=f"Most samples before the forward pass are at {source.where}.",
        share=source.share,
        expected_speedup=_speedup(source.share * (least + most) / 2),
        speedup_range=(_speedup(source.share * least), _speedup(source.share * most)),
        fixes=(ROLLOUT_FIX,),
        evidence=(Evidence("samples", source.rows),),
        where=source.where,
        stage="acting",
        is_certain=False,
    )


def _evidence(training: Training, loader: Loader) -> tuple[Evidence, ...]:
    relation = data_pipeline.run(training.run)
    rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    stages = tuple(r for r in rows if r["rank"] == loader.rank and r["loader"] == loader.number)
    found = [Evidence("events", longest_waits(training, loader))]
    return (Evidence("data-pipeline", stages), *found) if stages else tuple(found)
