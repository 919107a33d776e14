"""A framework that is not known, or has no description of its own: only what is true of all."""

from strobe.frameworks.framework import DebugMode, Framework

UNKNOWN = Framework(
    name="unknown",
    # Libraries that save checkpoints of any framework.
    checkpoints=("pickle.py", "safetensors", "checkpoint"),
    loader_starts=("multiprocessing/popen",),
    debug_modes={
        "CUDA_LAUNCH_BLOCKING": DebugMode("blocked-launches", "unset-variable"),
        "profiler": DebugMode(fix="stop-profiler", title="users-profiler"),
    },
)
