"""Fewer threads compute than there are idle cores.

## What it is
PyTorch splits a large operator among threads, by default one for each physical core. With
`torch.set_num_threads(1)` or `OMP_NUM_THREADS=1`, left over from a script that started many
processes or from the default of a scheduler, one core works and the others are idle.

## How it is judged
The threads that PyTorch may use are compared with the physical cores, and with the cores that were
idle during training: those that other ranks, data workers or other programs use are not counted.
Only operators that PyTorch runs in parallel, and that take at least 20 us per call, become faster.
How much was measured on two cores: products and convolutions 1.7x, others 1.5x, less 4 us for each
call. For more cores the gain is extrapolated, so it is an estimate. A finding needs 10% of step
time.

## How to fix
Remove `torch.set_num_threads(1)`, or set it to the number of idle cores divided by the number of
ranks on the machine. Set `OMP_NUM_THREADS` likewise, if it is in the environment. Leave it where
the other cores are needed for data workers.
"""

from strobe.advise.evidence.operator_times import (
    OperatorCost,
    operator_costs,
    undisturbed_ns,
    why_not,
)
from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.rules.thread_oversubscription import Machine, machines
from strobe.advise.training import Training
from strobe.units import percent

NAME = "idle-cores"

# A core that is idle for at least this part of the time can take a thread.
IDLE_RATIO = 0.75
WORTH_TELLING_RATIO = 0.1
# Shorter operators gain nothing: starting threads takes as long as they do.
SHORTEST_NS = 20_000
START_NS = 4_000
# N threads are N to this power as fast; measured with two, on matrices and images of many sizes.
PRODUCTS_POWER, OTHERS_POWER = 0.77, 0.6

_PRODUCTS = frozenset((
    "mm", "addmm", "bmm", "baddbmm", "linear", "convolution_backward", "mkldnn_convolution",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
))  # fmt: skip
_OTHERS = frozenset((
    "add", "add_", "mul", "mul_", "sub", "sub_", "div", "div_", "copy_", "addcmul_", "addcdiv_",
    "relu", "relu_", "clamp_min", "clamp_min_", "threshold_backward", "gelu", "gelu_backward",
    "tanh", "tanh_backward", "sigmoid", "sigmoid_backward", "silu", "silu_backward", "exp", "pow",
    "sqrt", "where", "_softmax", "_softmax_backward_data", "_log_softmax",
    "_log_softmax_backward_data", "native_layer_norm", "native_layer_norm_backward",
    "native_batch_norm", "native_batch_norm_backward", "native_group_norm",
    "native_group_norm_backward", "max_pool2d_with_indices", "max_pool2d_with_indices_backward",
    "avg_pool2d", "avg_pool2d_backward", "_fused_adam_", "_fused_adamw_", "_fused_sgd_",
))  # fmt: skip


def check(training: Training) -> Verdict:
    if training.has_devices:
        return Clear("a device computes, not the cores")
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
            f"{machine.threads} threads compute, and {machine.busy_cores:.1f} of "
            f"{machine.cores:g} cores are busy"
        )
    if unknown := why_not(training):
        return unknown
    costs = operator_costs(training)
    gains = [(gain, cost) for cost in costs
             if (gain := _gained_ns(cost, now, wanted)) > 0]  # fmt: skip
    share = min(0.95, sum(gain for gain, _ in gains) / undisturbed_ns(training, costs))
    if share < WORTH_TELLING_RATIO:
        return Clear(
            f"{idle} cores are idle, but more threads would save only {percent(share)} of step time"
        )
    return _finding(training, machine, wanted, idle, share, [cost for _, cost in gains])


def _finding(
    training: Training, machine: Machine, wanted: int, idle: int, share: float,
    costs: list[OperatorCost],
) -> Finding:  # fmt: skip
    cores = "1 core is" if idle == 1 else f"{idle} cores are"
    threads = "1 thread computes" if machine.threads == 1 else f"{machine.threads} threads compute"
    return Finding(
        title=f"{threads} while {cores} idle on {machine.host}: with {wanted} threads for each "
        f"rank about {percent(share)} of step time is saved",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            f"torch.set_num_threads({wanted}) before the training loop",
            f"or OMP_NUM_THREADS={wanted} in the environment, if it is set there",
        ),
        evidence=(Evidence("operators", tuple(cost.row() for cost in costs[:5])),),
        is_certain=False,
    )


def _not_recorded(training: Training) -> Verdict:
    if training.frameworks and "torch" not in training.frameworks:
        return CannotTell(
            "how many threads compute is known of torch alone",
            "look at the cores that are busy: strobe show RUN core-users",
        )
    return CannotTell(
        "how many threads torch may use was not recorded",
        "record it again with this version: strobe run train.py",
    )


def _physical_cores(training: Training) -> int:
    """Of the machine with the fewest; 0 if it was not recorded."""
    ((cores,),) = training.run.sql(
        "SELECT min(value) FROM counters WHERE name = 'cores_physical'"
    ).fetchall()
    return int(cores or 0)


def _idle_cores(machine: Machine, physical: int) -> int:
    """Whole cores that nobody uses, and that have no thread of this training yet."""
    cores = min(machine.cores, physical)
    return int(max(0.0, min(cores - machine.busy_cores + 1 - IDLE_RATIO, cores - machine.threads)))


def _gained_ns(cost: OperatorCost, now: int, wanted: int) -> float:
    """What the calls of a step would gain with more threads."""
    if cost.type not in _PRODUCTS and cost.type not in _OTHERS:
        return 0.0
    each_ns = cost.cost_ns / max(1.0, cost.calls)
    if each_ns < SHORTEST_NS:
        return 0.0
    power = PRODUCTS_POWER if cost.type in _PRODUCTS else OTHERS_POWER
    ratio = float((now / wanted) ** power)
    starts_ns = START_NS if now == 1 else 0
    return max(0.0, each_ns * (1 - ratio) - starts_ns) * cost.calls
