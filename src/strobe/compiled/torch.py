"""Functions and modules of torch.compile under torch.profiler: for `strobe.profile_compiled`.

On a CPU the kernels that inductor writes are not seen by the profiler unless they are compiled so:
the function is compiled once more, for this profile alone.
"""

from pathlib import Path
from typing import Any

from strobe.compiled.profile import RUN

FRAMEWORK = "torch"


def is_compiled(function: Any) -> bool:
    return _original(function) is not None


def record(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int, folder: Path
) -> Path:
    import torch
    from torch._inductor import config

    with config.patch({"cpp.enable_kernel_profile": True}):
        seen = torch.compile(_original(function))
        seen(*args, **kwargs)
    _finish(torch)
    activities = torch.profiler.supported_activities()
    with torch.profiler.profile(
        activities=activities, record_shapes=True, with_flops=True
    ) as profiler:
        for number in range(repeat):
            with torch.profiler.record_function(f"{RUN}{number}"):
                seen(*args, **kwargs)
                _finish(torch)
    path = folder / "compiled.trace.json"
    profiler.export_chrome_trace(str(path))
    return path


def _original(function: Any) -> Any:
    """What was compiled: of a module, the module itself."""
    module = getattr(function, "_orig_mod", None)
    return module if module is not None else getattr(function, "_torchdynamo_orig_callable", None)


def _finish(torch: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
