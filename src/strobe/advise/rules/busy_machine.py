"""Other programs use the cores that training needs.

## What it is
Another job, a browser, a build or somebody else on the same machine computes while training runs.
Training gets fewer cores than it could use, so every step takes longer. Nothing in the training
script is at fault, and figures recorded under such conditions vary from run to run.

## How it is judged
The kernel counts for every thread how long it had a core and how long it was ready to run without
one. Cores that were busy and not used by this job (training, its workers and threads, other ranks
on the same host, Strobe) were used by other programs. What training lacked is attributed to them in
proportion. This is reported as a condition of the recording, before any finding, from 10% of step
time on. While it lasts, faults have to cost more than usual to be reported, because small ones
cannot be distinguished from the effects of the other programs.

## How to fix
Stop the other programs, run training at another time, or reserve cores for it (`taskset`, a
container with its own CPUs, the job scheduler's CPU request). Then record again.
"""

from strobe.advise.evidence.core_shares import core_shares
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.analyse.tables.steps import core_users
from strobe.model.journal import OTHER_PROGRAM
from strobe.units import percent, times

NAME = "busy-machine"

# It is an estimate: less may be noise.
WORTH_TELLING_RATIO = 0.1
# A program is named if it used at least this part of what all others used.
NAMED_RATIO = 0.15
MOST_NAMED = 3


def check(training: Training) -> Verdict:
    if training.has_devices:
        return CannotTell(
            "a device computes, so cores used by other programs may not matter",
            "see device-idle and host-gap, which say whether the device waits for the host",
        )
    found = [shares for rank in training.ranks if (shares := core_shares(training, rank))]
    if not found:
        return CannotTell(
            "the use of the cores was not recorded",
            "record for at least a few seconds on Linux: strobe run train.py",
        )
    worst = max(found, key=lambda shares: shares.others_share)
    share = worst.others_share
    if share < WORTH_TELLING_RATIO:
        return Clear(f"other programs use {worst.others:.1f} cores and cost {percent(share)}")
    usable = _usable(training, worst.rank)
    named = _programs(training, worst.rank)
    by_whom = f" ({', '.join(named)})" if named else ""
    of_all = f" of {usable:.0f}" if usable else ""
    return Finding(
        title=f"Other programs{by_whom} use {worst.others:.1f}{of_all} cores, which makes training "
        f"about {times(1 / (1 - share))} slower",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            "Stop the other programs or reserve cores for training (taskset, a container with its "
            "own CPUs, the scheduler's CPU request), then record again",
        ),
        evidence=(Evidence(core_users.NAME, tuple(_users(training, worst.rank))),),
        is_certain=False,
    )


def _usable(training: Training, rank: int) -> float | None:
    _, milli = training.counter("cores_usable_milli", rank)
    return float(milli[-1]) / 1000 if len(milli) else None


def _programs(training: Training, rank: int) -> list[str]:
    """The names of the programs that used most."""
    prefix, suffix = OTHER_PROGRAM.split("{}")
    rows = training.rows(
        """
        SELECT name, max(value) - min(value) AS cpu_ns FROM counters
        WHERE rank = $rank AND starts_with(name, $prefix) AND ends_with(name, $suffix)
        GROUP BY name ORDER BY cpu_ns DESC, name
        """,
        {"rank": rank, "prefix": prefix, "suffix": suffix},
    )
    total_ns = sum(row["cpu_ns"] for row in rows)
    return [
        row["name"].removeprefix(prefix).removesuffix(suffix)
        for row in rows[:MOST_NAMED] if row["cpu_ns"] >= NAMED_RATIO * max(1, total_ns)
    ]  # fmt: skip


def _users(training: Training, rank: int) -> list[dict[str, object]]:
    relation = core_users.run(training.run)
    rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    return [row for row in rows if row["rank"] == rank]
