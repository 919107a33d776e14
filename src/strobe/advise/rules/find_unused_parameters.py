"""DistributedDataParallel looks for unused parameters, and there are none.

## What it is
With `find_unused_parameters=True`, DistributedDataParallel walks the autograd graph after every
forward pass to find parameters that will get no gradient, and the ranks tell each other which they
used. It is needed only where a forward pass leaves parameters out, and is often set to silence an
error once, or copied from another project.

## How it is judged
Strobe reads the setting and what DistributedDataParallel itself reports of unused parameters after
its first iterations. The cost was measured on a CPU with gloo, 7 us for each parameter tensor, so
the figure is an estimate. Gradient buckets are not put into the order of the backward pass either,
which may cost more. It is a warning from 1% of step time on, and a finding from 5%.

## How to fix
Leave out `find_unused_parameters=True`. If parameters are unused in some later steps only, keep it.
Where every step uses the same parameters, `static_graph=True` finds them once.
"""

from typing import Any

from strobe.advise.finding import CannotTell, Clear, Evidence, Finding, Verdict
from strobe.advise.training import Training
from strobe.units import count, percent

NAME = "find-unused-parameters"

# Measured with 80 tensors in a process: 2.9 ms instead of 2.3 ms.
TENSOR_NS = 7_000
WORTH_WARNING_RATIO = 0.01
WORTH_TELLING_RATIO = 0.05
_WRAPPER = "DistributedDataParallel"


def check(training: Training) -> Verdict:
    wrappers = [_wrapper(rank.parallel) for rank in training.run.manifest.ranks]
    looking = [one for one in wrappers if one.get("find_unused_parameters")]
    if not looking:
        return Clear("no DistributedDataParallel looks for unused parameters")
    if any(one.get("unused_parameter_bytes") is None for one in looking):
        return CannotTell(
            "whether parameters are unused is not known before 16 steps",
            "record more steps with this version: strobe run train.py",
        )
    if any(one["unused_parameter_bytes"] for one in looking):
        return Clear("find_unused_parameters=True is needed: some parameters are unused")
    tensors = max(int(one.get("parameter_tensors") or 0) for one in looking)
    share = min(0.95, tensors * TENSOR_NS / max(1.0, training.typical_ns))
    told = f"find_unused_parameters=True, but all {count(tensors)} parameter tensors are used"
    if share < WORTH_WARNING_RATIO:
        return Clear(f"{told}: about {percent(share)} of step time")
    return Finding(
        title=f"{told}: looking for unused ones takes about {percent(share)} of step time",
        share=share,
        expected_speedup=1 / (1 - share),
        fixes=(
            "DistributedDataParallel(model) without find_unused_parameters=True",
            "or with static_graph=True, if every step uses the same parameters",
        ),
        evidence=(Evidence("run.json", tuple(looking)),),
        is_certain=False,
        is_warning=share < WORTH_TELLING_RATIO,
    )


def _wrapper(parallel: dict[str, Any]) -> dict[str, Any]:
    found = (one for one in parallel.get("wrappers") or () if one.get("wrapper") == _WRAPPER)
    return next(found, {})
