"""PyTorch computes with fewer threads than there are idle cores.

## What it is
PyTorch splits a large operator among threads, by default one for each physical core. If
`torch.set_num_threads(1)` or `OMP_NUM_THREADS=1` is left over from a script that started many
processes, or is the default of a scheduler, one core computes and the others are idle.

## How it is judged
The number of threads that PyTorch may use is compared with the physical cores, and with the cores
that were idle during training. Cores that other ranks, data workers or other programs use do not
count as idle. Only operators that PyTorch runs in parallel, and that take at least 20 us per call,
become faster. The gain was measured on two cores: 1.7x for products and convolutions, 1.5x for
other operators, less 4 us per call. For more cores the gain is extrapolated, so it is an estimate.
A finding needs 10% of step time.

## How to fix
Remove `torch.set_num_threads(1)`, or set it to the number of idle cores divided by the number of
ranks on the machine. If `OMP_NUM_THREADS` is in the environment, set it to the same number. Keep
the setting if data workers need the other cores.
"""

from strobe.advise.evidence.core_shares import available, average
from strobe.advise.evidence.operator_times import (
    OperatorCost,
    operator_costs,
    undisturbed_ns,
    why_not,
)
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.fixes import fix
from strobe.advise.rules.thread_oversubscription import Machine, machines, threads_text
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE_OF_CORES, speedup
from strobe.advise.training import Training
from strobe.frameworks import Framework
from strobe.messages import message
from strobe.units import count, percent

NAME = "idle-cores"

# A core that is idle for at least this part of the time can run another thread.
IDLE_RATIO = 0.75
# A shorter operator gains nothing, because starting threads takes as long as the operator.
SHORTEST_NS = 20_000
START_NS = 4_000
# N threads are faster by N to this power, measured with two threads on many sizes of matrices and
# images.
PRODUCTS_POWER, OTHERS_POWER = 0.77, 0.6


def check(training: Training) -> Verdict:
    if training.has_devices:
        return Clear(message("idle-cores.on-device"))
    found = machines(training)
    physical = _physical_cores(training)
    if not found or not physical:
        return _not_recorded(training)
    machine = min(found, key=lambda one: _idle_cores(one, physical))
    now = machine.threads // machine.ranks
    idle = _idle_cores(machine, physical)
    wanted = now + idle // machine.ranks
    if wanted <= now:
        return Clear(
            message(
                "idle-cores.enough-threads",
                threads=count(machine.threads),
                busy=average(machine.busy_cores),
                cores=count(machine.cores),
            )
        )
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    gains = [(gain, cost) for cost in costs
             if (gain := _gained_ns(training.framework, cost, now, wanted)) > 0]  # fmt: skip
    share = min(MOST_ESTIMATED, sum(gain for gain, _ in gains) / undisturbed_ns(training, costs))
    if share < SMALLEST_SHARE_OF_CORES:
        return Clear(message("idle-cores.small", cores=available(idle), share=percent(share)))
    return _finding(training.framework, machine, wanted, idle, share, [cost for _, cost in gains])


def _finding(
    framework: Framework,
    machine: Machine,
    wanted: int,
    idle: int,
    share: float,
    costs: list[OperatorCost],
) -> Finding:
    threads = count(wanted)
    return Finding(
        title=message("idle-cores.title", cores=available(idle), share=percent(share)),
        why=message(
            "idle-cores.why",
            threads=threads_text(machine.threads),
            host=machine.host,
            wanted=threads,
        ),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            fix("set-threads", framework, threads=threads),
            message("idle-cores.set-variable", threads=threads),
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in costs[:5])),),
        is_certain=False,
    )


def _not_recorded(training: Training) -> Verdict:
    if not training.may_have(lambda framework: framework.counts_threads):
        return CannotTell(
            message("thread-oversubscription.only-torch"), message("idle-cores.show-users")
        )
    return CannotTell(
        message("thread-oversubscription.not-recorded"), message("thread-oversubscription.record")
    )


def _physical_cores(training: Training) -> int:
    """Those of the machine with the fewest; 0 if they were not recorded."""
    ((cores,),) = training.run.sql(
        "SELECT min(value) FROM counters WHERE name = 'cores_physical'"
    ).fetchall()
    return int(cores or 0)


def _idle_cores(machine: Machine, physical: int) -> int:
    """The number of whole cores that are idle, and for which training has no thread yet."""
    cores = min(machine.cores, physical)
    return int(max(0.0, min(cores - machine.busy_cores + 1 - IDLE_RATIO, cores - machine.threads)))


def _gained_ns(framework: Framework, cost: OperatorCost, now: int, wanted: int) -> float:
    """The time that more threads would save in the calls of a step."""
    is_product = cost.type in framework.parallel_products
    if not is_product and cost.type not in framework.parallel_others:
        return 0.0
    each_ns = cost.cost_ns / max(1.0, cost.calls)
    if each_ns < SHORTEST_NS:
        return 0.0
    power = PRODUCTS_POWER if is_product else OTHERS_POWER
    ratio = float((now / wanted) ** power)
    starts_ns = START_NS if now == 1 else 0
    return max(0.0, each_ns * (1 - ratio) - starts_ns) * cost.calls
