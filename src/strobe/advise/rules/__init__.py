"""Faults that Strobe can name. To add one: write its module, add one line here."""

from typing import Protocol

from strobe.advise.finding import Verdict
from strobe.advise.rules import (
    allocator_churn,
    busy_machine,
    crowded_cores,
    data_parallel,
    data_starvation,
    debug_mode,
    dense_gradients,
    device_idle,
    double_precision,
    excess_padding,
    exposed_communication,
    find_unused_parameters,
    gc_pause,
    gradients_in_evaluation,
    growing_work,
    host_gap,
    host_sync,
    hot_operator,
    idle_cores,
    layout_copies,
    low_precision_unused,
    memory_growth,
    periodic_stall,
    recompilation,
    slow_rank,
    slow_transfer,
    small_batch,
    thread_oversubscription,
    tiny_operators,
    unfused_optimizer,
    unused_gradients,
    warm_up,
)
from strobe.advise.training import Training


class Rule(Protocol):
    """A module that looks for one fault. Its docstring is the manual.

    One that also answers for runs without training steps says `NEEDS_STEPS = False`.
    """

    NAME: str

    def check(self, training: Training) -> Verdict: ...


RULES: tuple[Rule, ...] = (
    allocator_churn,
    busy_machine,
    crowded_cores,
    data_parallel,
    data_starvation,
    debug_mode,
    dense_gradients,
    device_idle,
    double_precision,
    excess_padding,
    exposed_communication,
    find_unused_parameters,
    gc_pause,
    gradients_in_evaluation,
    growing_work,
    host_gap,
    host_sync,
    hot_operator,
    idle_cores,
    layout_copies,
    low_precision_unused,
    memory_growth,
    periodic_stall,
    recompilation,
    slow_rank,
    slow_transfer,
    small_batch,
    thread_oversubscription,
    tiny_operators,
    unfused_optimizer,
    unused_gradients,
    warm_up,
)  # keep sorted

# What the recording suffered from rather than what the training does: asked of every run, reported
# before any finding and not among them.
CONDITIONS: tuple[Rule, ...] = (busy_machine,)

# A rule that names a cause explains the time that rules which only see a symptom also find.
EXPLAINS = {
    "allocator-churn": ("device-idle", "host-sync"),
    "data-parallel": ("device-idle", "exposed-communication", "host-gap"),
    "data-starvation": ("crowded-cores",),
    "debug-mode": (
        "gc-pause",
        "host-gap",
        "host-sync",
        "hot-operator",
        "idle-cores",
        "small-batch",
        "tiny-operators",
        "unfused-optimizer",
    ),
    "dense-gradients": ("hot-operator", "small-batch", "unfused-optimizer"),
    "excess-padding": ("hot-operator", "tiny-operators"),
    "gc-pause": ("host-gap", "periodic-stall"),
    "gradients-in-evaluation": ("periodic-stall",),
    "growing-work": ("gc-pause", "host-gap", "hot-operator", "memory-growth", "tiny-operators"),
    "recompilation": ("host-gap", "hot-operator", "periodic-stall", "tiny-operators", "warm-up"),
    "slow-rank": ("data-starvation", "host-gap"),
    "tiny-operators": ("device-idle", "host-gap", "small-batch"),
    "unfused-optimizer": ("host-gap",),
}
