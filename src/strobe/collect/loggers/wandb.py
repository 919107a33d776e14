"""Weights & Biases: `run.log`, the config as hyperparameters and the summary as lineage.

Numbers, texts, images, histograms and tables are taken; plots, videos, audio and other media are
not. Names of nested dictionaries are joined by a dot, as W&B does.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from strobe.collect.loggers.calls import Values, is_number, wrap
from strobe.collect.loggers.names import Prefixes
from strobe.collect.loggers.summaries import binned, record_of
from strobe.collect.metrics.arrays import image_job, tensor_job
from strobe.collect.metrics.histograms import histogram_job
from strobe.model.metric_journal import HISTOGRAM

_SOURCE = "wandb"
# Arrays with more elements are histograms to W&B.
_MOST_IN_LIST = 32
_LONGEST_TABLE = 10_000  # rows
_INTERNAL = "_"  # names that begin with it are W&B's own


def install(package: str) -> None:
    wandb = sys.modules[package]
    run = sys.modules["wandb.sdk.wandb_run"].Run
    config = sys.modules["wandb.sdk.wandb_config"].Config
    summary = sys.modules["wandb.sdk.wandb_summary"]
    take = _Runs(summary.Summary)
    wrap(run, "log", _SOURCE, take.log)
    wrap(wandb, "init", _SOURCE, take.init)
    for name in ("__setitem__", "__setattr__", "update", "setdefaults"):
        wrap(config, name, _SOURCE, take.config)
    for name in ("__setitem__", "__setattr__"):
        wrap(summary.SummaryDict, name, _SOURCE, take.summary)
    wrap(summary.SummaryDict, "update", _SOURCE, take.summary_update)


class _Runs:
    def __init__(self, summary: type) -> None:
        self._summary = summary
        self._prefixes = Prefixes()
        self._config: dict[str, Any] = {}

    def _prefix(self, run: Any) -> str:
        if run is None or not getattr(run, "id", None):
            return ""
        return self._prefixes.of_run(str(run.id), getattr(run, "name", None))

    def log(
        self, values: Values, run: Any, data: Mapping[str, Any], step: Any = None, *_: Any,
        **__: Any,
    ) -> None:  # fmt: skip
        prefix, numbers = self._prefix(run), {}
        for tag, value in _flat(data, prefix):
            if is_number(value):
                numbers[tag] = value
            else:
                _take_other(values, tag, value, step)
        if numbers:
            values.scalars(numbers, step)

    def init(self, values: Values, *_: Any, **__: Any) -> None:
        run = values.result
        if run is not None:
            self._take_config(values, run.config, self._prefix(run))

    def config(self, values: Values, config: Any, *_: Any, **__: Any) -> None:
        """The whole config, of which the values that are new are taken."""
        run = getattr(vars(config).get("_callback"), "__self__", None)
        if run is not None:  # it is not complete while it is made
            self._take_config(values, config, self._prefix(run))

    def _take_config(self, values: Values, config: Any, prefix: str) -> None:
        found = {
            prefix + str(name): value for name, value in dict(config.items()).items()
            if not str(name).startswith(_INTERNAL)
        }  # fmt: skip
        found = {name: value for name, value in _flat(found, "")}
        new = {name: value for name, value in found.items() if self._is_new(name, value)}
        values.hyperparameters(new)

    def _is_new(self, name: str, value: Any) -> bool:
        text = repr(value)
        is_new = self._config.get(name) != text
        self._config[name] = text
        return is_new

    def summary(self, values: Values, summary: Any, key: Any, value: Any) -> None:
        self.summary_update(values, summary, {key: value})

    def summary_update(self, values: Values, summary: Any, given: Mapping[str, Any]) -> None:
        if isinstance(summary, self._summary):  # not a part of it, whose keys are incomplete
            facts = {
                name: value for name, value in _flat(given, "")
                if is_number(value) or isinstance(value, (str, list))
            }  # fmt: skip
            values.lineage("train", facts)


def _flat(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _take_other(values: Values, tag: str, value: Any, step: Any) -> None:
    if isinstance(value, str):
        values.text(tag, value, step)
        return
    parts = value if isinstance(value, (list, tuple)) else [value]
    for index, one in enumerate(parts):
        take = _MEDIA.get(type(one).__name__)
        if take is not None and type(one).__module__.startswith("wandb."):
            take(values, tag, one, step, index)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        _take_array(values, tag, value, step)


def _take_array(values: Values, tag: str, array: Any, step: Any) -> None:
    count = 1
    for length in array.shape:
        count *= int(length)
    if count > _MOST_IN_LIST:
        values.submit(*histogram_job(tag, array, step, source=values.source))
    elif count:
        values.submit(*tensor_job(tag, array, step, values.source))


def _take_image(values: Values, tag: str, image: Any, step: Any, index: int) -> None:
    picture = getattr(image, "image", None)
    if picture is not None:
        values.submit(*image_job(tag, picture, step, values.source, index=index))


def _take_histogram(values: Values, tag: str, value: Any, step: Any, index: int) -> None:
    edges, counts = ([float(one) for one in part] for part in (value.bins, value.histogram))
    count = int(sum(counts))
    record = {
        **record_of(values, HISTOGRAM, tag, step, values.ts_ns), "count": count,
        "min": edges[0] if count else None, "max": edges[-1] if count else None,
        **binned(edges, counts),
    }  # fmt: skip
    values.submit(lambda: (record, None), 0)


def _take_table(values: Values, tag: str, table: Any, step: Any, index: int) -> None:
    rows = [list(row) for row in table.data[:_LONGEST_TABLE]]
    content = {"columns": list(table.columns), "data": rows}
    values.text(tag, json.dumps(content, ensure_ascii=False, default=str), step)


_MEDIA = {"Image": _take_image, "Histogram": _take_histogram, "Table": _take_table}
