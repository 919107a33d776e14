"""Lightning: `self.log`, and every logger that a script calls itself (`logger.log_metrics`).

The values of `self.log` are taken where Lightning hands them to its loggers, so that they appear
once for any number of loggers, and with `logger=False` as well.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from strobe.collect.loggers.calls import Values, is_number, wrap
from strobe.collect.metrics.numbers import PLAIN

_SOURCE = "lightning"
_CONNECTOR = "trainer.connectors.logger_connector.logger_connector"
_RANKS = "lightning_utilities.core.rank_zero"


def install_trainer(package: str) -> None:
    base = package.removesuffix(".trainer.trainer")
    connector = sys.modules[f"{base}.{_CONNECTOR}"]._LoggerConnector
    wrap(connector, "log_metrics", _SOURCE, _log_of_trainer)
    wrap(sys.modules[package], "_log_hyperparams", _SOURCE, _hyperparameters)


def install_loggers(package: str) -> None:
    take = _Loggers()
    for logger in _classes(package):
        if "log_metrics" in vars(logger):
            wrap(logger, "log_metrics", _SOURCE, take.log)
        if "log_hyperparams" in vars(logger):
            wrap(logger, "log_hyperparams", _SOURCE, _log_hyperparameters)


def _classes(package: str) -> Iterator[type]:
    for found in vars(sys.modules[package]).values():
        if isinstance(found, type) and hasattr(found, "log_metrics"):
            yield found


def _log_of_trainer(
    values: Values, connector: Any, metrics: Mapping[str, Any], step: Any = None
) -> None:
    trainer = connector.trainer
    if not metrics or not trainer.is_global_zero:
        return
    given = dict(metrics)
    if step is None:
        step = given.pop("step", None)
        if step is None:
            given.setdefault("epoch", trainer.current_epoch)
            step = trainer.fit_loop.epoch_loop._batches_that_stepped
    _take(values, given, step)


def _hyperparameters(values: Values, trainer: Any) -> None:
    if not trainer.is_global_zero:
        return
    for part in (trainer.lightning_module, trainer.datamodule):
        if part is not None and getattr(part, "_log_hyperparams", False):
            values.hyperparameters(_settings(part.hparams_initial))


class _Loggers:
    """Callbacks give the same values to every logger, one after the other: they are taken once."""

    def __init__(self) -> None:
        self._logger: Any = None
        self._step: Any = None
        self._metrics: dict[str, Any] = {}

    def log(
        self, values: Values, logger: Any, metrics: Mapping[str, Any], step: Any = None, *_: Any,
        **__: Any,
    ) -> None:  # fmt: skip
        if not _is_rank_zero() or self._is_repeated(logger, metrics, step):
            return
        self._logger, self._step, self._metrics = logger, step, dict(metrics)
        prefix = getattr(logger, "_prefix", "")
        before = f"{prefix}{getattr(logger, 'LOGGER_JOIN_CHAR', '-')}" if prefix else ""
        _take(values, {f"{before}{tag}": value for tag, value in metrics.items()}, step)

    def _is_repeated(self, logger: Any, metrics: Mapping[str, Any], step: Any) -> bool:
        last = self._metrics
        return (
            logger is not self._logger and step == self._step and len(metrics) == len(last)
            and all(_is_same(value, last.get(tag)) for tag, value in metrics.items())
        )  # fmt: skip


def _is_same(one: Any, other: Any) -> bool:
    """Tensors are not compared by value: that may wait for a device."""
    return one is other or (
        one.__class__ in PLAIN and one.__class__ is other.__class__ and one == other
    )


def _log_hyperparameters(
    values: Values, logger: Any, params: Any = None, *_: Any, **__: Any
) -> None:
    if _is_rank_zero() and params is not None:
        values.hyperparameters(_settings(params))


def _take(values: Values, metrics: Mapping[str, Any], step: Any) -> None:
    numbers = {}
    for tag, value in metrics.items():
        for name, one in value.items() if isinstance(value, Mapping) else ((None, value),):
            if is_number(one):
                numbers[tag if name is None else f"{tag}/{name}"] = one
    if numbers:
        values.scalars(numbers, step)


def _settings(params: Any) -> dict[str, Any]:
    found = dict(params.items()) if hasattr(params, "items") else dict(vars(params))
    return {str(name): value for name, value in found.items() if name != "_class_path"}


def _is_rank_zero() -> bool:
    ranks = sys.modules.get(_RANKS)
    return ranks is None or getattr(ranks.rank_zero_only, "rank", 0) in (0, None)
