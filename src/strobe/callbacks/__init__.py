"""Recording by step and by epoch, for trainers that tell their callbacks when these begin and end.

Each name is loaded with its library when it is first asked for; a library that is missing is named
with the command that installs it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strobe.callbacks.accelerate_hook import AccelerateHook as AccelerateHook
    from strobe.callbacks.lightning_callback import LightningCallback as LightningCallback
    from strobe.callbacks.lightning_profiler import LightningProfiler as LightningProfiler
    from strobe.callbacks.mindspore_callback import MindSporeCallback as MindSporeCallback
    from strobe.callbacks.plain_loop import Loop as Loop
    from strobe.callbacks.transformers_callback import TransformersCallback as TransformersCallback

# Name: its module, and what to install for it.
_HOMES = {
    "AccelerateHook": ("accelerate_hook", "accelerate"),
    "LightningCallback": ("lightning_callback", "lightning"),
    "LightningProfiler": ("lightning_profiler", "lightning"),
    "Loop": ("plain_loop", ""),
    "MindSporeCallback": ("mindspore_callback", "mindspore"),
    "TransformersCallback": ("transformers_callback", "transformers"),
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'strobe.callbacks' has no attribute {name!r}")
    import importlib

    from strobe.errors import MissingPackage

    module, package = _HOMES[name]
    try:
        return getattr(importlib.import_module(f"strobe.callbacks.{module}"), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in (package, f"pytorch_{package}"):
            raise
        raise MissingPackage.of(
            "errors/python.callback-needs", name=name, package=package
        ) from None


def __dir__() -> list[str]:
    return __all__
