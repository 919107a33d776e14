"""MLflow: metrics and parameters, of the functions of `mlflow` and of `MlflowClient`."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from strobe.collect.loggers.calls import Values, named, time_of, wrap
from strobe.collect.loggers.names import Prefixes

_SOURCE = "mlflow"
_MS = 1e3


def install(package: str) -> None:
    mlflow = sys.modules[package]
    client, fluent = (sys.modules[f"mlflow.tracking.{name}"] for name in ("client", "fluent"))
    take = _Runs(fluent)
    functions = {
        "log_metric": take.metric, "log_metrics": take.metrics, "log_param": take.param,
        "log_params": take.params,
    }  # fmt: skip
    for name, taker in functions.items():
        # `mlflow.log_metric` and the function that other modules of MLflow call.
        for module in (mlflow, fluent):
            wrap(module, name, _SOURCE, named(module, name, taker))
    for name, taker in (
        ("log_metric", take.metric), ("log_param", take.param), ("log_batch", take.batch)
    ):  # fmt: skip
        owner = client.MlflowClient
        wrap(owner, name, _SOURCE, named(owner, name, taker))


class _Runs:
    def __init__(self, fluent: Any) -> None:
        self._fluent = fluent
        self._prefixes = Prefixes()

    def _prefix(self, given: dict[str, Any]) -> str:
        run, name = given.get("run_id"), None
        if run is None:
            active = self._fluent.active_run()
            if active is None:
                return ""
            run, name = active.info.run_id, getattr(active.info, "run_name", None)
        return self._prefixes.of_run(str(run), name)

    def metric(self, values: Values, given: dict[str, Any]) -> None:
        numbers = {self._prefix(given) + given["key"]: given["value"]}
        values.scalars(numbers, given.get("step"), _time(values, given.get("timestamp")))

    def metrics(self, values: Values, given: dict[str, Any]) -> None:
        prefix = self._prefix(given)
        numbers = {prefix + name: value for name, value in given["metrics"].items()}
        values.scalars(numbers, given.get("step"), _time(values, given.get("timestamp")))

    def param(self, values: Values, given: dict[str, Any]) -> None:
        self._take_params(values, given, {given["key"]: given["value"]})

    def params(self, values: Values, given: dict[str, Any]) -> None:
        self._take_params(values, given, given["params"])

    def _take_params(
        self, values: Values, given: dict[str, Any], params: Mapping[str, Any]
    ) -> None:
        prefix = self._prefix(given)
        values.hyperparameters({prefix + name: value for name, value in params.items()})

    def batch(self, values: Values, given: dict[str, Any]) -> None:
        prefix = self._prefix(given)
        metrics: Sequence[Any] = given["metrics"] or ()
        together: dict[tuple[Any, Any], dict[str, Any]] = {}
        for metric in metrics:
            numbers = together.setdefault((metric.step, metric.timestamp), {})
            numbers[prefix + metric.key] = metric.value
        for (step, timestamp), numbers in together.items():
            values.scalars(numbers, step, _time(values, timestamp))
        values.hyperparameters({prefix + one.key: one.value for one in given["params"] or ()})


def _time(values: Values, timestamp: Any) -> int:
    return time_of(values, None if timestamp is None else timestamp / _MS)
