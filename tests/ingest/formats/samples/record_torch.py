"""Record two samples with PyTorch: a trace of its profiler, and its memory timeline.

python -m tests.ingest.formats.samples.record_torch
"""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

SAMPLES = Path(__file__).parent
STEPS = 3


def record() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))
    batches = iter(torch.utils.data.DataLoader(data, batch_size=8))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as profiler:
        for _ in range(STEPS + 1):
            inputs, labels = next(batches)
            with record_function("forward"):
                loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(trace))
        _write(SAMPLES / "kineto" / "mlp.pt.trace.json.gz", _slim(json.loads(trace.read_text())))
        timeline = Path(folder, "memory.raw.json.gz")
        profiler.export_memory_timeline(str(timeline), device="cpu")
        raw = json.loads(gzip.decompress(timeline.read_bytes()))
        _write(SAMPLES / "torch_memory" / "mlp.raw.json.gz", raw)


def _slim(trace: dict[str, Any]) -> dict[str, Any]:
    """Without the frames of PyTorch and Python themselves, and without the paths of a machine."""
    packages = str(Path(torch.__file__).parent.parent)
    library = str(Path(json.__file__).parent.parent)
    here = str(Path(__file__).parents[4])

    def is_wanted(event: dict[str, Any]) -> bool:
        name = str(event.get("name", ""))
        is_inner = name.startswith((packages, library, "<", "torch/", "site-packages/"))
        return event.get("cat") != "python_function" or not is_inner

    del trace["traceName"]
    trace["traceEvents"] = [event for event in trace["traceEvents"] if is_wanted(event)]
    text = json.dumps(trace).replace(packages, "site-packages").replace(here + "/", "")
    return json.loads(text.replace(library, "lib"))


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    packed = gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0)
    path.write_bytes(packed)


if __name__ == "__main__":
    record()
