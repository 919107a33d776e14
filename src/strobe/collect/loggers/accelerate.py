"""accelerate: `accelerator.log` and the config of `init_trackers`, on the main process."""

import sys
from collections.abc import Mapping
from typing import Any

from strobe.collect.loggers.calls import Values, is_number, wrap

_SOURCE = "accelerate"


def install(package: str) -> None:
    owner = sys.modules[package].Accelerator
    wrap(owner, "log", _SOURCE, _log)
    wrap(owner, "init_trackers", _SOURCE, _config)


def _log(
    logged: Values, accelerator: Any, values: Mapping[str, Any], step: Any = None, *_: Any,
    **__: Any,
) -> None:  # fmt: skip
    if not accelerator.is_main_process:
        return
    numbers = {tag: value for tag, value in values.items() if is_number(value)}
    if numbers:
        logged.scalars(numbers, step)
    for tag, value in values.items():
        if isinstance(value, str):
            logged.text(tag, value, step)


def _config(
    logged: Values, accelerator: Any, project_name: str, config: Any = None, *_: Any, **__: Any
) -> None:
    if accelerator.is_main_process:
        logged.hyperparameters(config or {})
