"""Training waits for data.

## What it is
The training loop asks for the next batch before it is ready, and computes nothing while it waits.
The finding's `stage` names the reason:

- `reading`: loading items waits for a disk, a network or a database;
- `transform`: loading items computes: decoding, augmenting, tokenizing;
- `collate`: combining the items into a batch is slow;
- `transfer`: moving batches from a worker to the training process is slow;
- `workers`: there are too few workers;
- `restarts`: workers are restarted for every epoch. The first step of an epoch that is slower for
  this reason counts too;
- `acting`: the model collects its data in an environment, as in reinforcement learning.

## How it is judged
Strobe times every wait of the loop. The share is the part of step time spent waiting, as in the
table `step-statistics` and in the summary. Less than that can be avoided in three cases. While a
device computes, only the time in which it ran out of work counts. If a batch was ready, only the
time to receive it counts. With workers, the first batch of an epoch does not count.

Inside the data loader Strobe times every batch: time off the processor is reading, time on it is
transform. With these times it simulates a small model of the pipeline (workers, queue, training,
and the cores they share), with the present number of workers and with more, up to one per core of
the recorded machine. If more workers remove enough of the waiting (40% where reading is the
slowest stage, 60% elsewhere), the smallest number that does is the first fix. Otherwise the slowest
stage has to become faster, and the finding names the line of the dataset that was sampled most
often in it.

For MindSpore's datasets Strobe samples the queues between operations: an operation with a full
queue before it and an empty queue after it is the slow one. The gain is that of the number of
workers in the fix, and a step cannot become shorter than a step that found its batch ready.

A loop without a data loader is judged by stack samples before the forward pass.

The gain is that of the first fix. If it depends on how fast the new code is, a range is given: a
stage that is rewritten is assumed to keep between 2% and 40% of its time.

## How to fix
Set `num_workers=2, persistent_workers=True` on the DataLoader to prepare batches while training
computes. A loop without a data loader can use one, or a thread that fills a `queue.Queue`. For
reading, keep data that is read again in memory, and store many small files as few large ones. For
transform and collate, vectorize, and cache anything that does not change between epochs. Items that
are in memory are fastest in whole batches: with `batch_size=None` and
`sampler=BatchSampler(RandomSampler(dataset), 256, drop_last=False)`, one call of `__getitem__` gets
all indices of a batch, and tensors and arrays return all its items at once. For transfer, return
tensors instead of lists of Python objects, and move less data.

In MindSpore each operation has its own workers: `dataset.map(..., num_parallel_workers=2)`. In JAX,
use the processes of grain (`worker_count`, `mp_prefetch`) or the threads of tf.data (`prefetch`,
`num_parallel_calls`).
"""

from strobe.advise.data.loader import Loader, loaders, longest_waits
from strobe.advise.data.loader_causes import REWRITTEN_RATIO, cause_of, stage_fix
from strobe.advise.data.pipeline_without_steps import pipeline_alone
from strobe.advise.data.plain_source import PlainSource, plain_source
from strobe.advise.evidence.device_model import device_times
from strobe.advise.evidence.side_work import ROLLOUT_FIX, ROLLOUT_RANGE, is_rollout
from strobe.advise.finding import CannotTell, Clear, Evidence, Figure, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE, speedup
from strobe.advise.training import Training
from strobe.analyse.tables.data import data_pipeline
from strobe.messages import Message, message
from strobe.units import percent

NAME = "data-starvation"
NEEDS_STEPS = False  # the queues of a pipeline show its slow operation without them


def check(training: Training) -> Verdict:
    if not training.step_count:
        return pipeline_alone(training)
    found = loaders(training)
    if not found:
        return _without_loader(training)
    loader = found[0]
    measured = _measured_ratio(training, loader)
    device_idle = _device_idle_ratio(training, loader)
    share = min(1.0, device_idle * _avoidable_ratio(loader) * measured)
    if share < SMALLEST_SHARE:
        id = "small-device-idle" if device_idle < 1 else "small"
        return Clear(message(f"data-starvation.{id}", share=percent(share)))
    cause = cause_of(training, loader)
    return Finding(
        title=_title(training, loader, measured, share, device_idle),
        why=cause.why,
        share=min(MOST_MEASURED, share + cause.beyond),
        expected_speedup=speedup(share * cause.recovered + cause.beyond, MOST_MEASURED),
        speedup_range=cause.recovered_range
        and (
            speedup(share * cause.recovered_range[0], MOST_MEASURED),
            speedup(share * cause.recovered_range[1], MOST_MEASURED),
        ),
        fixes=cause.fixes,
        evidence=_evidence(training, loader),
        where=cause.where,
        stage=cause.stage,
        is_certain=cause.is_certain,
        derivation=_derivation(training, loader, measured, share, device_idle, cause.beyond),
    )


def _avoidable_ratio(loader: Loader) -> float:
    """The part of the waiting that a user can avoid."""
    return loader.avoidable_ns / max(1, loader.waited_ns)


def _measured_ratio(training: Training, loader: Loader) -> float:
    """The part of step time that the loader's rank waits for data, as in `step-statistics`."""
    mine = training.steps["rank"] == loader.rank
    return float(training.steps["data_ns"][mine].sum()) / max(1.0, loader.total_ns)


def _title(
    training: Training, loader: Loader, measured: float, share: float, device_idle: float
) -> Message:
    who = message("data-starvation.training")
    if len(training.ranks) > 1:
        who = message("data-starvation.rank", rank=loader.rank)
    if percent(share) == percent(measured):
        return message("data-starvation.title", who=who, measured=percent(measured))
    id = "title-device-idle" if device_idle < 1 else "title-avoidable"
    return message(
        f"data-starvation.{id}", who=who, measured=percent(measured), share=percent(share)
    )


def _derivation(
    training: Training, loader: Loader, measured: float, share: float, device_idle: float,
    beyond: float,
) -> tuple[Figure, ...]:  # fmt: skip
    ((recorded,),) = training.run.sql(
        "SELECT count(*) FROM step_times WHERE rank = $rank", {"rank": loader.rank}
    ).fetchall()
    figures = [
        ("recorded", recorded, "steps"),
        ("counted", loader.steps, "steps"),
        ("step", loader.step_ns, "ns"),
        ("wait", measured * loader.step_ns, "ns"),
        ("wait-share", measured, "ratio"),
    ]
    if device_idle < 1:
        figures.append(("device-idle", device_idle, "ratio"))
    if (avoidable := _avoidable_ratio(loader)) < 1:
        figures.append(("avoidable", avoidable, "ratio"))
    if beyond:
        figures.append(("first-steps", beyond, "ratio"))
    if percent(share + beyond) != percent(measured):
        figures.append(("cost", share + beyond, "ratio"))
    return tuple(
        Figure(message(f"data-starvation.figure-{id}"), value, unit) for id, value, unit in figures
    )


def _device_idle_ratio(training: Training, loader: Loader) -> float:
    """The part of the waiting in which no device had work."""
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
            message("data-starvation.no-waits-in-trace"), message("data-starvation.record-waits")
        )
    between = float(training.steps["gap_ns"].sum()) / max(1, training.total_ns)
    if between < SMALLEST_SHARE:
        return Clear(message("data-starvation.no-loader", share=percent(between)))
    source = plain_source(training)
    if source is None:
        return CannotTell(
            message("data-starvation.source-unknown"), message("data-starvation.record-longer")
        )
    if source.share < SMALLEST_SHARE:
        return Clear(message("data-starvation.preparing-is-short", share=percent(source.share)))
    return _acting(source) if is_rollout(training) else _in_loop(training, source)


def _in_loop(training: Training, source: PlainSource) -> Finding:
    """The training loop prepares its batches itself."""
    # Prepared in the background, data overlaps with training, so only the longer of them is left.
    left = max(1 - source.share, source.share if source.stage == "reading" else 0.5)
    fixes = [fix("loader", training.framework, source.where)]
    # Data that takes longer to compute than training does keeps a core busy all the time, so its
    # computation itself must become faster.
    cheaper_left = 1 - source.share * (1 - REWRITTEN_RATIO)
    if source.stage == "transform":
        fixes.append(stage_fix(training, "transform", source.where))
        if cheaper_left < left:
            left = cheaper_left
            fixes.reverse()
    id = "title-loop-waits" if source.stage == "reading" else "title-loop-computes"
    return Finding(
        title=message(f"data-starvation.{id}", share=percent(source.share)),
        why=_most_sampled(source),
        share=source.share,
        expected_speedup=1 / left,
        fixes=tuple(fixes),
        evidence=(Evidence("samples", source.rows),),
        where=source.where,
        stage=source.stage,
        is_certain=False,
    )


def _acting(source: PlainSource) -> Finding:
    """The data comes from what the model does, so it cannot be prepared without the model."""
    least, most = ROLLOUT_RANGE
    return Finding(
        title=message("data-starvation.title-acting", share=percent(source.share)),
        why=message("data-starvation.samples-at", where=source.where),
        share=source.share,
        expected_speedup=speedup(source.share * (least + most) / 2, MOST_MEASURED),
        speedup_range=(
            speedup(source.share * least, MOST_MEASURED),
            speedup(source.share * most, MOST_MEASURED),
        ),
        fixes=(ROLLOUT_FIX,),
        evidence=(Evidence("samples", source.rows),),
        where=source.where,
        stage="acting",
        is_certain=False,
    )


def _most_sampled(source: PlainSource) -> Message:
    if not source.function:
        return message("data-starvation.samples-at", where=source.where)
    return message(
        "data-starvation.samples-in-function", where=source.where, function=source.function
    )


def _evidence(training: Training, loader: Loader) -> tuple[Evidence, ...]:
    relation = data_pipeline.run(training.run)
    rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    stages = tuple(r for r in rows if r["rank"] == loader.rank and r["loader"] == loader.number)
    found = [Evidence("events", longest_waits(training, loader))]
    return (Evidence("data-pipeline", stages), *found) if stages else tuple(found)
