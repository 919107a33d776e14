"""Strobe: a profiler for neural-network training.

Importing it is cheap: what records, reads or analyses is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from strobe.version import __version__

if TYPE_CHECKING:
    from strobe.collect.on_demand.monitor import DynamicProfilerMonitor as DynamicProfilerMonitor
    from strobe.collect.profiler import Profiler as Profiler
    from strobe.collect.profiler import profile as profile
    from strobe.collect.profiler import step as step
    from strobe.collect.scope import scope as scope
    from strobe.compiled.profile import profile_compiled as profile_compiled
    from strobe.errors import StrobeError as StrobeError
    from strobe.model.options import schedule as schedule
    from strobe.reading import advice as advice
    from strobe.reading import compare as compare
    from strobe.reading import import_traces as import_traces
    from strobe.reading import open_run as open_run

_HOMES = {
    "DynamicProfilerMonitor": "strobe.collect.on_demand.monitor",
    "Profiler": "strobe.collect.profiler",
    "profile": "strobe.collect.profiler",
    "profile_compiled": "strobe.compiled.profile",
    "schedule": "strobe.model.options",
    "scope": "strobe.collect.scope",
    "step": "strobe.collect.profiler",
    "advice": "strobe.reading",
    "compare": "strobe.reading",
    "import_traces": "strobe.reading",
    "open_run": "strobe.reading",
    "StrobeError": "strobe.errors",
}

__all__ = [
    "DynamicProfilerMonitor",
    "Profiler",
    "StrobeError",
    "__version__",
    "advice",
    "compare",
    "import_traces",
    "open_run",
    "profile",
    "profile_compiled",
    "schedule",
    "scope",
    "step",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'strobe' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
