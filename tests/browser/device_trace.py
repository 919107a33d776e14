"""A trace of a training on a GPU, as torch.profiler writes it: three steps, two streams."""

from pathlib import Path
from typing import Any

from tests.ingest.imports import span, write

STEPS = 3
STEP_US = 1000


def write_device_trace(path: Path) -> Path:
    device = {"id": 0, "name": "A card", "numSms": 108}
    return write(path, [event for step in range(STEPS) for event in _step(step)],
                 deviceProperties=[device])  # fmt: skip


def _step(number: int) -> list[dict[str, Any]]:
    begin = STEP_US * number
    events = [span(f"ProfilerStep#{number}", begin, begin + STEP_US, "user_annotation")]
    events += _launched(number, "aten::conv2d", "sgemm_kernel", begin + 100, 1)
    events += _launched(number, "aten::relu", "relu_kernel", begin + 300, 2)
    events += _launched(number, "aten::mm", "sgemm_kernel", begin + 500, 3)
    return events


def _launched(step: int, operator: str, kernel: str, at: int, place: int) -> list[dict[str, Any]]:
    """An operator, the call that launches its kernel, and the kernel a little later."""
    number = 10 * step + place
    stream = {"pid": 0, "tid": 7, "device": 0, "stream": 7}
    shapes = {"Input Dims": [[8, 3, 32, 32]], "Input type": ["float"]}
    return [
        span(operator, at, at + 80, **{"External id": number, **shapes}),
        span("cudaLaunchKernel", at + 20, at + 40, "cuda_runtime", correlation=number),
        span(kernel, at + 50, at + 190, "kernel", correlation=number, **stream),
    ]
