"""What the full name of an operator of MindSpore tells.

    Gradients/Default/network-WithLossCell/_backbone-LeNet5/fc3-Dense/Grad_MatMul/MatMul-op1

is a MatMul of the backward pass, for the module network._backbone.fc3. Older versions write
gradMatMul or gradMatMul-expand for Grad_MatMul. Without graphs names are bare: `MatMul`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"

_NUMBER = re.compile(r"-op\d+$")
_COLLECTIVE = re.compile(
    r"(?:AllReduce|AllGather|ReduceScatter|AlltoAllV?|AllToAllV?|NeighborExchange(?:V2)?|Broadcast"
    r"|Reduce|Send|Receive|Barrier|CollectiveScatter|CollectiveGather)$"
)
_BACKWARD_TYPE = re.compile(r"Grad(?:V\d|WithArgmax|D)?$|Backprop|Grad[A-Z]")
_BACKWARD_PATH = re.compile(r"Gradients/|recompute_|(?:^|/)[gG]rad_*[A-Z][^/]*/")
_GRADIENT_OF = re.compile(r"[gG]rad_*[A-Z]")
_REDUCER_PATH = re.compile(r"(?:^|/)grad_reducer-")
_OPTIMIZER_PATH = re.compile(r"(?:^|/)(?:_?optimi[sz]er\w*|opt)-")
_UPDATE_TYPE = re.compile(
    r"Apply[A-Z]|(?:Fused\w*)?(?:Adam|AdamW|Lamb|LARS\w*|Lion|Momentum|SGD|Ftrl|RMSProp)\w*$"
)
_OUTERMOST = ("Default", "Gradients", "kernel_graph0", "recompute_Default")


class Meaning(NamedTuple):
    type: str  # MatMul
    scope: str  # network._backbone.fc3; empty where the name does not tell
    part: str  # FORWARD, BACKWARD, UPDATE, or empty where the name does not tell
    is_collective: bool


@lru_cache(maxsize=1 << 16)
def meaning(name: str) -> Meaning:
    *path, last = name.split("/")
    kind = _NUMBER.sub("", last)
    modules = [part for part in path if part not in _OUTERMOST and not _GRADIENT_OF.match(part)]
    scope = ".".join(part.split("-")[0] for part in modules)
    is_collective = bool(_COLLECTIVE.match(kind))
    return Meaning(kind, scope, "" if is_collective else _part(name, kind), is_collective)


def is_full_name(name: str) -> bool:
    """Whether this is the name of an operator in a graph of MindSpore."""
    return "/" in name and _NUMBER.search(name) is not None


def _part(name: str, kind: str) -> str:
    if _BACKWARD_PATH.search(name):
        return BACKWARD
    if _OPTIMIZER_PATH.search(name) or _UPDATE_TYPE.match(kind):
        # The count of steps is often kept first of all, while forward goes on.
        return "" if kind == "AssignAdd" else UPDATE
    if _BACKWARD_TYPE.search(kind):
        return BACKWARD
    return FORWARD if name.count("/") > 1 and not _REDUCER_PATH.search(name) else ""
