"""Strobe: a profiler for neural-network training.

Importing it is cheap: what records, reads or analyses is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from strobe.version import __version__

if TYPE_CHECKING:
    from strobe.callbacks.summary.collector import SummaryCollector as SummaryCollector
    from strobe.callbacks.summary.record import SummaryRecord as SummaryRecord
    from strobe.callbacks.summary.writer import SummaryWriter as SummaryWriter
    from strobe.collect.metrics.api import log as log
    from strobe.collect.metrics.api import log_histogram as log_histogram
    from strobe.collect.metrics.api import log_hyperparameters as log_hyperparameters
    from strobe.collect.metrics.api import log_image as log_image
    from strobe.collect.metrics.api import log_lineage as log_lineage
    from strobe.collect.metrics.api import log_tensor as log_tensor
    from strobe.collect.metrics.api import log_text as log_text
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
    from strobe.web.catalogue import open_catalogue as open_catalogue

_HOMES = {
    "DynamicProfilerMonitor": "strobe.collect.on_demand.monitor",
    "Profiler": "strobe.collect.profiler",
    "SummaryCollector": "strobe.callbacks.summary.collector",
    "SummaryRecord": "strobe.callbacks.summary.record",
    "SummaryWriter": "strobe.callbacks.summary.writer",
    "profile": "strobe.collect.profiler",
    "log": "strobe.collect.metrics.api",
    "log_histogram": "strobe.collect.metrics.api",
    "log_hyperparameters": "strobe.collect.metrics.api",
    "log_image": "strobe.collect.metrics.api",
    "log_lineage": "strobe.collect.metrics.api",
    "log_tensor": "strobe.collect.metrics.api",
    "log_text": "strobe.collect.metrics.api",
    "profile_compiled": "strobe.compiled.profile",
    "schedule": "strobe.model.options",
    "scope": "strobe.collect.scope",
    "step": "strobe.collect.profiler",
    "advice": "strobe.reading",
    "compare": "strobe.reading",
    "open_catalogue": "strobe.web.catalogue",
    "import_traces": "strobe.reading",
    "open_run": "strobe.reading",
    "StrobeError": "strobe.errors",
}

__all__ = [
    "DynamicProfilerMonitor",
    "Profiler",
    "StrobeError",
    "SummaryCollector",
    "SummaryRecord",
    "SummaryWriter",
    "__version__",
    "advice",
    "compare",
    "log",
    "log_histogram",
    "log_hyperparameters",
    "log_image",
    "log_lineage",
    "log_tensor",
    "log_text",
    "open_catalogue",
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
