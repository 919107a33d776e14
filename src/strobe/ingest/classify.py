"""What kind of event a framework's category and name stand for: the last place that knows them."""

import re

import numpy as np

from strobe.ingest.codes import Array, mapped
from strobe.ingest.kineto import Trace
from strobe.ingest.kineto_json import DEVICE_CATEGORIES
from strobe.model.schema import KINDS

KIND_NAMES = tuple(KINDS)
KIND = {kind: number for number, kind in enumerate(KIND_NAMES)}

MODULE_NAME = re.compile(r"strobe:(\d+)\Z")
BACKWARD_PREFIX = "autograd::engine::evaluate_function"
_COLLECTIVE_SPAN = re.compile(r"(?:gloo|nccl|mpi|ucc|xccl|hccl):")
_COLLECTIVE_KERNEL = re.compile(r"(?:void )?(?:nccl|rccl|hccl|oneccl)", re.IGNORECASE)
_WAITS = re.compile(r"(?:cuda|hip)(?:Device|Stream|Event|Ctx)Synchronize\b|cuCtxSynchronize")

_KIND_OF_CATEGORY = {
    "cpu_op": "op",
    "Operator": "op",
    "python_function": "python",
    "user_annotation": "annotation",
    "gpu_user_annotation": "annotation",
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "Runtime": "runtime",
    "cuda_sync": "sync",
}


def kind_of(category: str, name: str) -> str:
    kind = _KIND_OF_CATEGORY.get(category, "mark")
    if name == "Python GC":
        return "gc"
    if kind == "op" and MODULE_NAME.match(name):
        return "module"
    if kind in ("op", "annotation") and name.startswith("enumerate(DataLoader)#"):
        return "data"
    if category == "user_annotation" and _COLLECTIVE_SPAN.match(name):
        return "collective"
    if kind == "kernel" and _COLLECTIVE_KERNEL.match(name):
        return "collective"
    if kind == "runtime" and _WAITS.match(name):
        return "sync"
    return kind


def kinds(trace: Trace) -> Array:
    """The kind of every event of a trace, as a number; each distinct pair is judged once."""
    width = max(1, len(trace.names))
    pairs, back = np.unique(
        trace.events.category.astype(np.int64) * width + trace.events.name, return_inverse=True
    )
    judged = [
        KIND[kind_of(trace.categories[pair // width], trace.names[pair % width])]
        for pair in pairs.tolist()
    ]
    return np.array(judged, dtype=np.int32)[back] if judged else np.zeros(0, dtype=np.int32)


def on_device(trace: Trace) -> Array:
    """Whether each event of a trace ran on a device rather than on a thread of the host."""
    flags = [int(category in DEVICE_CATEGORIES) for category in trace.categories]
    found: Array = mapped(trace.events.category, flags) == 1
    return found
