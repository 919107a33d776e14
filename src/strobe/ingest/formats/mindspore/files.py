"""What the files of MindSpore's profiler are: by their names, or else by how they begin.

A name is a kind and a number, that of the rank or device: cpu_op_execute_timestamp_0.txt.
"""

import re
from pathlib import Path

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed
from strobe.ingest.formats.ascend.folder import plain_name

RUNTIME = "RuntimeProfilerDetail"
MINDDATA = {
    "pipeline_profiling", "minddata_pipeline_raw", "dataset_iterator_profiling",
    "device_queue_profiling", "minddata_cpu_utilization",
}  # fmt: skip
# Each of these is worth reading alone,
ANCHORS = {
    "cpu_op_execute_timestamp", "gpu_op_execute_timestamp", "step_trace_raw",
    "output_timeline_data", "activity_execute_timestamp", "step_trace_profiling",
    "pipeline_profiling", "minddata_pipeline_raw", "dataset_iterator_profiling",
    "device_queue_profiling", RUNTIME,
}  # fmt: skip
# these beside one of the former,
COMPANIONS = {
    "cpu_framework", "gpu_framework", "cpu_ms_memory_record", "gpu_ms_memory_record", "hccl_raw",
    "minddata_cpu_utilization", "profiler_info", "strobe_annotations",
    "strobe_arguments", "strobe_cells", "strobe_gradients",
}  # fmt: skip
# and these hold totals of the same, or the same once more.
NEEDLESS = re.compile(
    r"(?:cpu|gpu)_op_(?:detail|type)_info_\d+\.csv$|.*timeline_(?:display|summary)_\d+\.json$"
    r"|aic(?:ore|pu)_intermediate_\d+.*\.csv$|flops_.*\.(?:txt|json)$|framework_raw_\d+\.csv$"
    r"|output_op_compute_time_.*\.txt$|min_cycle_counter_\d+\.txt$|step_trace_point_info.*\.json$"
    r"|minddata_pipeline_summary_\d+\.(?:csv|json)$|parallel_strategy_\d+\.json$"
    r"|ascend_cluster_analyse_.*\.csv$|gpu_activity_data_\d+\.csv$|start_time_\d+\.txt$"
    r"|RuntimeProfiler(?:Json|Summary)\d+\.(?:json|csv)$"
)
_NAME = re.compile(r"([A-Za-z_]+?)_?(\d+)(?:_detail_time)?\.(?:txt|csv|json)$")
_CONTENTS = (
    (re.compile(rb"[^;\n]+;HostCpuOps;\d+,"), "cpu_op_execute_timestamp"),
    (re.compile(rb"[^;\n]+;GpuOps;\d+,"), "gpu_op_execute_timestamp"),
    (re.compile(rb"step_num,start_point,end_point,total,fp_point"), "step_trace_raw"),
    (re.compile(rb"(?:op|kernel)_name, ?stream_id, ?start_time"), "output_timeline_data"),
    (re.compile(rb'\s*\{(?=.*"op_info")(?=.*"output_queue")', re.DOTALL), "pipeline_profiling"),
    (re.compile(rb"\[Step:\s*\d+,? step_time:\d+ns[^\n]*\nmodule:"), RUNTIME),
)
_PEEK_BYTES = 64 << 10


def kind_by_name(path: Path) -> str | None:
    found = _NAME.match(plain_name(path))
    kind = found.group(1) if found else ""
    return kind if kind in ANCHORS or kind in COMPANIONS else None


def kind_by_content(head: bytes) -> str | None:
    return next((kind for pattern, kind in _CONTENTS if pattern.match(head)), None)


def number_of(path: Path) -> int:
    """The rank or device in a name; 0 where there is none."""
    found = _NAME.match(plain_name(path))
    return int(found.group(2)[-9:]) if found else 0


def by_kind(paths: list[Path]) -> dict[str, Path]:
    """The files whose kind is known; of two of a kind the first."""
    found: dict[str, Path] = {}
    for path in paths:
        kind = kind_by_name(path)
        if kind is None and len(paths) == 1:
            kind = kind_by_content(_beginning(path))
        if kind is not None:
            found.setdefault(kind, path)
    return found


def _beginning(path: Path) -> bytes:
    try:
        return compressed.beginning(path, _PEEK_BYTES)
    except UnreadableTrace:
        return b""
