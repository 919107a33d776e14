"""Write the samples whose tools need hardware or versions of Python that are hard to come by.

    python -m tests.ingest.formats.samples.draw

Two steps of a training each: the folder of an Ascend NPU, a timeline of MegEngine, and a Chrome
trace of a program that is none of the frameworks. The tests know the numbers from here.
"""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent

# Name, type, core, begin and length in microseconds, input and output shapes; for each step.
KERNELS = (
    ("MatMul_0", "MatMulV2", "AI_CORE", 100.5, 40.25, "8,16;16,32", "8,32"),
    ("Relu_0", "Relu", "AI_VECTOR_CORE", 145.0, 5.125, "8,32", "8,32"),
    ("hcom_allReduce__1_0_1", "hcom_allReduce_", "HCCL", 160.0, 30.0, "N/A", "N/A"),
    ("Adam_0", "ApplyAdam", "AI_VECTOR_CORE", 200.0, 10.0, "16,32", "16,32"),
)
ASCEND_BEGAN_US = 1_780_000_000_000_000
STEP_US = 500
STEPS = (5, 6)

# Name and length in microseconds, of each step on MegEngine's timeline.
OPERATORS = (("conv1.Convolution", 80.0), ("conv1.ADD", 10.5), ("fc.MatrixMul", 40.25))


def ascend() -> None:
    root = SAMPLES / "ascend" / "host_7_20260101000000000_ascend_pt"
    shutil.rmtree(root.parent, ignore_errors=True)
    output = root / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows, events = [], _named(1, "Python", "CPU") + _named(2, "Ascend Hardware", "NPU")
    for at, step in enumerate(STEPS):
        began = ASCEND_BEGAN_US + at * STEP_US
        events.append(_complete(1, 1, f"ProfilerStep#{step}", began, STEP_US - 10))
        for number, (name, kind, core, after, lasts, inputs, outputs) in enumerate(KERNELS):
            task = 10 * at + number
            rows.append(
                {
                    "Step Id": step, "Model ID": 4294967295, "Task ID": task, "Stream ID": 2,
                    "Name": name, "Type": kind, "OP State": "dynamic", "Accelerator Core": core,
                    "Start Time(us)": f"{began + after:.3f}\t", "Duration(us)": lasts,
                    "Wait Time(us)": 0, "Input Shapes": f'"{inputs}"',
                    "Output Shapes": f'"{outputs}"', "Device_id": 0,
                }
            )  # fmt: skip
            device = {"Task Type": core, "Stream Id": 2, "Task Id": task, "Model Id": 4294967295}
            events.append(_complete(2, 2, name, began + after, lasts, device))
            host = _complete(1, 1, f"aten::{kind.lower()}", began + after - 60, 15.0)
            events.append({**host, "cat": "cpu_op"})
    _csv(output / "kernel_details.csv", rows)
    (output / "trace_view.json").write_text(json.dumps(events, indent=0) + "\n")
    total = sum(kernel[4] for kernel in KERNELS if kernel[2] != "HCCL")
    steps = [
        {"Step": step, "Computing": total, "Communication(Not Overlapped)": 30.0, "Overlapped": 0.0,
         "Communication": 30.0, "Free": STEP_US - total - 30, "Stage": STEP_US, "Bubble": 0.0,
         "Communication(Not Overlapped and Exclude Receive)": 30.0, "Preparing": 0.0}
        for step in STEPS
    ]  # fmt: skip
    _csv(output / "step_trace_time.csv", steps)
    info = {"rank_id": 0, "torch_npu_version": "2.6.0", "cann_version": "8.0"}
    (root / "profiler_info_0.json").write_text(json.dumps(info) + "\n")


def _named(process: int, name: str, label: str) -> list[dict[str, Any]]:
    named = {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    labelled = {"ph": "M", "name": "process_labels", "pid": process, "args": {"labels": label}}
    return [named, labelled]


def _complete(
    process: int, thread: int, name: str, began_us: float, lasts_us: float, args: Any = None
) -> dict[str, Any]:
    # Ascend's exporters write moments as text.
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": f"{began_us:.3f}",
            "dur": lasts_us, "args": args or {}}  # fmt: skip


def _csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def megengine() -> None:
    process, events = 7, []
    events.append({"args": {"value": 26.0}, "name": "gpu_usgae_ratio", "ph": "C", "pid": process,
                   "tid": 0, "ts": 0.0})  # fmt: skip
    for step in range(2):
        now = 100.0 + 1000.0 * step
        for number, (name, lasts) in enumerate(OPERATORS):
            kind = name.split(".")[1]
            about = {"__device__": "cpu0:0", "__id__": 10 * step + number, "__name__": kind}
            for thread, more in ((0, {}), (2, {"cat": "Kernel"})):
                begin = now + 5 * thread
                span = {"name": kind, "pid": process, "tid": thread, **more}
                events.append({**span, "ph": "B", "ts": begin})
                events.append({**span, "ph": "E", "ts": begin + lasts, "args": about})
            now += lasts + 20
    header = {"metadata": {"localTime": "1780000000000000000"}}
    path = SAMPLES / "megengine" / "7.chrome_timeline.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"traceEvents": events, **header}, separators=(",", ":")) + "\n")


def chrome() -> None:
    process = {"pid": 3, "tid": 4}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "builder"}},
        {"ph": "B", "name": "build", "ts": 0, **process},
        {"ph": "X", "name": "parse", "ts": 10, "dur": 20.5, **process},
        {"ph": "X", "name": "link", "ts": 40, "dur": 5, "args": {"objects": 3}, **process},
        {"ph": "E", "name": "build", "ts": 100, **process},
        {"ph": "C", "name": "memory", "ts": 50, "pid": 3, "args": {"bytes": 4096}},
        {"ph": "s", "name": "made", "id": 1, "cat": "flow", "ts": 15, **process},
        {"ph": "f", "bp": "e", "name": "made", "id": 1, "cat": "flow", "ts": 42, **process},
    ]
    path = SAMPLES / "chrome" / "builder.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"traceEvents": events}, indent=0) + "\n")


if __name__ == "__main__":
    ascend()
    megengine()
    chrome()
