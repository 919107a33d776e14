"""Functions of ms.jit under MindSpore's own profiler: for `strobe.profile_compiled`."""

import json
import time
from pathlib import Path
from typing import Any

from strobe.collect.mindspore import versions
from strobe.collect.mindspore.windows import OnHost, device_target
from strobe.compiled.profile import RUN
from strobe.errors import UsageError
from strobe.model.options import Options

FRAMEWORK = "mindspore"


def is_compiled(function: Any) -> bool:
    """They say so of themselves; and cells are compiled while graphs are on."""
    from mindspore import context, nn

    if isinstance(function, nn.Cell):
        return bool(context.get_context("mode") == context.GRAPH_MODE)
    return hasattr(getattr(function, "__func__", function), "__wrapped_by_jit__")


def record(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int, folder: Path
) -> Path:
    from mindspore.profiler.profiler_interface import ProfilerInterface

    if device_target() != "CPU":
        raise UsageError.of("errors/python.mindspore-cpu-only")
    if ProfilerInterface.is_initialized:
        raise UsageError.of("errors/python.other-profiler")
    _finished(function(*args, **kwargs))
    profiler = OnHost(folder, Options())
    runs = []
    try:
        for number in range(repeat):
            began_ns = time.time_ns()
            _finished(function(*args, **kwargs))
            runs.append((f"{RUN}{number}", began_ns, time.time_ns() - began_ns))
    finally:
        profiler.stop()
    # Its files have operators alone: this tells which run they belong to.
    (folder / "strobe_annotations_0.json").write_text(json.dumps(runs), encoding="utf-8")
    return folder


def _finished(_: Any) -> None:
    """Wait until everything that was asked for has run."""
    home = versions.executors()
    if home is not None:
        home._pynative_executor.sync()
