"""DistributedDataParallel searches for unused parameters, although all are used.

## What it is
With `find_unused_parameters=True`, DistributedDataParallel walks the autograd graph after every
forward pass to find parameters that get no gradient, and the ranks exchange which parameters they
used. Only models that leave out parameters in a forward pass need this. It is often set once to
silence an error, or copied from another project.

## How it is judged
Strobe reads the setting, and what DistributedDataParallel itself reports about unused parameters
after its first iterations. The cost was measured on a CPU with gloo, 7 us for each parameter
tensor, so the figure is an estimate. Gradient buckets are not put into the order of the backward
pass either, which may cost more. From 1% of step time on, it is a warning, and from 5% a finding.

## How to fix
Leave out `find_unused_parameters=True`. Keep it if some later steps leave out parameters. If every
step uses the same parameters, `static_graph=True` finds the unused ones once.
"""

from typing import Any

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.thresholds import MOST_ESTIMATED, SMALLEST_SHARE, SMALLEST_WARNING_SHARE, speedup
from strobe.advise.training import Training
from strobe.messages import Message, message
from strobe.units import count, percent

NAME = "find-unused-parameters"

# Measured with 80 tensors in one process: a step takes 2.9 ms instead of 2.3 ms.
TENSOR_NS = 7_000
_WRAPPER = "DistributedDataParallel"


def check(training: Training) -> Verdict:
    wrappers = [_wrapper(rank.parallel) for rank in training.run.manifest.ranks]
    searching = [wrapper for wrapper in wrappers if wrapper.get("find_unused_parameters")]
    if not searching:
        return Clear(message("find-unused-parameters.not-set"))
    if any(wrapper.get("unused_parameter_bytes") is None for wrapper in searching):
        return CannotTell(
            message("find-unused-parameters.not-reported"),
            message("find-unused-parameters.record-more"),
        )
    if any(wrapper["unused_parameter_bytes"] for wrapper in searching):
        return Clear(message("find-unused-parameters.needed"))
    tensors = max(int(wrapper.get("parameter_tensors") or 0) for wrapper in searching)
    share = min(MOST_ESTIMATED, tensors * TENSOR_NS / max(1.0, training.typical_ns))
    if share < SMALLEST_WARNING_SHARE:
        return Clear(_small(tensors, share))
    return Finding(
        title=message("find-unused-parameters.title", share=percent(share)),
        why=_why(tensors),
        share=share,
        expected_speedup=speedup(share),
        fixes=(
            message("find-unused-parameters.remove-option"),
            message("find-unused-parameters.static-graph"),
        ),
        evidence=(Evidence("run.json", tuple(searching)),),
        is_certain=False,
        is_warning=share < SMALLEST_SHARE,
    )


def _small(tensors: int, share: float) -> Message:
    if tensors == 1:
        return message("find-unused-parameters.small-one-tensor", share=percent(share))
    return message("find-unused-parameters.small", count=count(tensors), share=percent(share))


def _why(tensors: int) -> Message:
    if tensors == 1:
        return message("find-unused-parameters.why-one-tensor")
    return message("find-unused-parameters.why", count=count(tensors))


def _wrapper(parallel: dict[str, Any]) -> dict[str, Any]:
    found = (one for one in parallel.get("wrappers") or () if one.get("wrapper") == _WRAPPER)
    return next(found, {})
