"""Other programs use the cores that training needs.

## What it is
Another job, a browser, a build or another user of the machine computes while training runs.
Training gets fewer cores than it could use, so every step takes longer. The training script is not
the cause, and measurements vary from run to run under such conditions.

## How it is judged
For every thread, the kernel counts how long it ran on a core and how long it was ready to run
without one. Cores that were busy, but not because of this job (training, its workers and threads,
other ranks on the same host, Strobe), were used by other programs. The cores that training was
missing are attributed to them in proportion. From 10% of step time on, this is reported as a
condition of the recording, before any finding. Faults then have to cost more than usual to be
reported, because small ones cannot be distinguished from the effects of the other programs.

## How to fix
Stop the other programs, run training at another time, or reserve cores for it (`taskset`, a
container with its own CPUs, the CPU request of the job scheduler). Then record again.
"""

from strobe.advise.evidence.core_shares import CoreShares, available, average, core_shares
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.thresholds import MOST_MEASURED, SMALLEST_SHARE_OF_CORES, speedup
from strobe.advise.training import Training
from strobe.analyse.tables.steps import core_users
from strobe.messages import Message, message
from strobe.model.journal import OTHER_PROGRAM
from strobe.units import percent, times

NAME = "busy-machine"

# A program is named if it used at least this part of the CPU time of all other programs.
NAMED_RATIO = 0.15
MOST_NAMED = 3


def check(training: Training) -> Verdict:
    if training.has_devices:
        return CannotTell(
            message("busy-machine.on-device"), message("core-shares.see-device-rules")
        )
    found = [shares for rank in training.ranks if (shares := core_shares(training, rank))]
    if not found:
        return CannotTell(message("core-shares.not-recorded"), message("core-shares.record"))
    worst = max(found, key=lambda shares: shares.others_share)
    share = worst.others_share
    if share < SMALLEST_SHARE_OF_CORES:
        cores = average(worst.others)
        return Clear(message("busy-machine.small", cores=cores, share=percent(share)))
    factor = times(1 / (1 - share)).removesuffix("×")
    return Finding(
        title=message(
            "busy-machine.title",
            programs=_programs(_names(training, worst.rank)),
            cores=_cores(worst, _usable(training, worst.rank)),
            times=message("units.times", factor=factor),
        ),
        why=worst.measured,
        share=share,
        expected_speedup=speedup(share, MOST_MEASURED),
        fixes=(message("busy-machine.stop"),),
        evidence=(Evidence(core_users.NAME, tuple(_users(training, worst.rank))),),
        is_certain=False,
    )


def _programs(names: list[str]) -> Message:
    if not names:
        return message("busy-machine.programs")
    return message("busy-machine.named-programs", names=", ".join(names))


def _cores(shares: CoreShares, usable: float | None) -> Message:
    """The cores that other programs use, of those that training may use if that is known."""
    used = average(shares.others)
    if not usable:
        return message("busy-machine.cores", used=used)
    return message("busy-machine.of-cores", used=used, usable=available(round(usable)))


def _usable(training: Training, rank: int) -> float | None:
    _, milli = training.counter("cores_usable_milli", rank)
    return float(milli[-1]) / 1000 if len(milli) else None


def _names(training: Training, rank: int) -> list[str]:
    """The programs that used the most CPU time."""
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
