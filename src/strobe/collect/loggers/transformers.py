"""transformers' Trainer: what it logs (`on_log`), and its arguments as hyperparameters.

Its own callbacks for TensorBoard, W&B and others are given the same values.
"""

import sys
from collections.abc import Mapping
from typing import Any

from strobe.collect.loggers.calls import Values, is_number, wrap

_SOURCE = "transformers"


def install(package: str) -> None:
    handler = sys.modules[package].CallbackHandler
    # Callbacks may change the values: one of transformers' own removes some.
    wrap(handler, "on_log", _SOURCE, _log, is_before=True)
    wrap(handler, "on_train_begin", _SOURCE, _begin, is_before=True)


def _log(
    values: Values, handler: Any, args: Any, state: Any, control: Any, logs: Mapping[str, Any],
    *_: Any, **__: Any,
) -> None:  # fmt: skip
    if not getattr(state, "is_world_process_zero", True):
        return
    step = getattr(state, "global_step", None)
    numbers = {tag: value for tag, value in logs.items() if is_number(value)}
    if numbers:
        values.scalars(numbers, step)
    for tag, value in logs.items():
        if isinstance(value, str):
            values.text(tag, value, step)


def _begin(values: Values, handler: Any, args: Any, state: Any, *_: Any, **__: Any) -> None:
    if getattr(state, "is_world_process_zero", True):
        values.hyperparameters(args.to_sanitized_dict())
