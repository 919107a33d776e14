"""What kind of event a framework's category and name stand for: the last place that knows them."""

import re

import numpy as np

from strobe.ingest.formats.kineto import Trace
from strobe.ingest.formats.kineto.json_objects import COLLECTIVE_OPERATOR, DEVICE_CATEGORIES
from strobe.ingest.trace.codes import Array, distinct, mapped
from strobe.model.schema import KINDS

KIND_NAMES = tuple(KINDS)
KIND = {kind: number for number, kind in enumerate(KIND_NAMES)}

MODULE_NAME = re.compile(r"strobe:(\d+)\Z")
BACKWARD_PREFIX = "autograd::engine::evaluate_function"
# Before 2022 the nodes that autograd runs stood for themselves.
BACKWARD_NAMES = (BACKWARD_PREFIX, "torch::autograd::AccumulateGrad")
COLLECTIVE_SPAN = re.compile(r"(?:gloo|nccl|rccl|mpi|ucc|xccl|hccl|mccl|eccl):")
_DATA_PREFIX = "enumerate(DataLoader)#"
# By a library of collectives; or by kernels that reduce over the memory of other devices.
_COLLECTIVE_KERNEL = re.compile(
    r"(?:void )?(?:\(anonymous namespace\)::)?"
    r"(?:\w*(?:nccl|rccl|hccl|oneccl|xccl)|multimem_|(?:one|two)_shot_all|"
    r"(?:\w+::)*(?:cross_device_reduce|allreduce_fusion|lamport_style))",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"(?:cuda|hip|cu|mu|musa)(?:Device|Stream|Event|Ctx|Thread)Synchronize"
    r"|ze\w+Synchronize|urQueueFinish|urEventWait|mtia\w*[sS]ynchronize"
)
# In 2021 what the user or the framework named was an operator like any other.
_NAMED_BY_FRAMEWORK = re.compile(
    r"ProfilerStep#|Optimizer\.(?:step|zero_grad)#|DistributedDataParallel\.|## |\[param\|"
)

_KIND_OF_CATEGORY = {
    "cpu_op": "op",
    "Operator": "op",
    "python_function": "python",
    "user_annotation": "annotation",
    "gpu_user_annotation": "annotation",
    "kernel": "kernel",
    "Kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
    "collective_comm": "collective",
    "cuda_sync": "sync",
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime", "xpu_runtime", "xpu_driver",
         "privateuse1_runtime", "privateuse1_driver", "glow_runtime"),
        "runtime",
    ),
}  # fmt: skip


def kind_of(category: str, name: str) -> str:
    kind = _KIND_OF_CATEGORY.get(category, "mark")
    if name == "Python GC":
        return "gc"
    judge = _JUDGES.get(kind)
    return judge(category, name) if judge else kind


def _of_operator(category: str, name: str) -> str:
    if MODULE_NAME.match(name):
        return "module"
    if name.startswith(_DATA_PREFIX):
        return "data"
    return "annotation" if _NAMED_BY_FRAMEWORK.match(name) else "op"


def _of_annotation(category: str, name: str) -> str:
    if name.startswith(_DATA_PREFIX):
        return "data"
    is_host = category == "user_annotation"
    return "collective" if is_host and COLLECTIVE_SPAN.match(name) else "annotation"


def _of_kernel(category: str, name: str) -> str:
    if category == "mtia_ccp_events" and name == "dma_request":
        return "memcpy"
    return "collective" if _COLLECTIVE_KERNEL.match(name) else "kernel"


def _of_runtime(category: str, name: str) -> str:
    return "sync" if _WAITS.match(name) else "runtime"


_JUDGES = {
    "op": _of_operator,
    "annotation": _of_annotation,
    "kernel": _of_kernel,
    "runtime": _of_runtime,
}


def kinds(trace: Trace) -> Array:
    """The kind of every event of a trace, as a number; each distinct pair is judged once."""
    pairs, back = distinct([trace.events.category, trace.events.name])
    judged = [KIND[kind_of(trace.categories[cat], trace.names[name])] for cat, name in pairs]
    found = np.array(judged, dtype=np.int32)[back] if judged else np.zeros(0, dtype=np.int32)
    return _with_told_collectives(trace, found)


def _with_told_collectives(trace: Trace, kinds: Array) -> Array:
    """Where no span shows a collective on the host, the operator that tells of it stands for it."""
    if COLLECTIVE_OPERATOR not in trace.names or any(map(COLLECTIVE_SPAN.match, trace.names)):
        return kinds
    texts = [text.strip('"') for text in trace.texts]
    communicates = [text not in ("", "wait", "init") for text in texts]
    told = mapped(trace.events.arg("operation"), np.array(communicates, dtype=np.int32)) == 1
    told &= trace.events.name == trace.names.index(COLLECTIVE_OPERATOR)
    return np.where(told, np.int32(KIND["collective"]), kinds)


def on_device(trace: Trace) -> Array:
    """Whether each event of a trace ran on a device rather than on a thread of the host."""
    flags = [int(category in DEVICE_CATEGORIES) for category in trace.categories]
    found: Array = mapped(trace.events.category, flags) == 1
    return found
