"""accelerate: `accelerator.log` and the config of `init_trackers`, on the main process."""

import sys
from typing import Any

from strobe.collect.loggers.calls import Values, is_number, named, wrap

_SOURCE = "accelerate"


def install(package: str) -> None:
    owner = sys.modules[package].Accelerator
    wrap(owner, "log", _SOURCE, named(owner, "log", _log))
    wrap(owner, "init_trackers", _SOURCE, named(owner, "init_trackers", _config))


def _log(values: Values, given: dict[str, Any]) -> None:
    if not given["self"].is_main_process:
        return
    step = given.get("step")
    numbers = {tag: value for tag, value in given["values"].items() if is_number(value)}
    if numbers:
        values.scalars(numbers, step)
    for tag, value in given["values"].items():
        if isinstance(value, str):
            values.text(tag, value, step)


def _config(values: Values, given: dict[str, Any]) -> None:
    if given["self"].is_main_process:
        values.hyperparameters(given.get("config") or {})
