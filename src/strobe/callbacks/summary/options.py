"""The options of SummaryCollector, with MindSpore's meaning and defaults."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strobe.callbacks.summary.errors import (
    WrongType,
    WrongValue,
    check_choice,
    check_keys,
    check_positive,
    check_type,
)
from strobe.collect import notices
from strobe.collect.notices import notice
from strobe.messages import message

SWITCHES = (
    "collect_metric", "collect_graph", "collect_train_lineage", "collect_eval_lineage",
    "collect_input_data", "collect_dataset_graph",
)  # fmt: skip
HISTOGRAMS, LANDSCAPE = "histogram_regular", "collect_landscape"
# What mindoptimizer, MindInsight's tuner, adds to the lineage of a training.
TUNER_VARIABLE = "MINDINSIGHT_HYPER_CONFIG"
_MOST_TUNER_CHARACTERS = 100_000

UNITS = ("step", "epoch")
_LANDSCAPE_KEYS = ("landscape_size", "unit", "num_samples", "create_landscape", "intervals")
_SMALLEST_LANDSCAPE, _LARGEST_LANDSCAPE = 3, 256
_SHORTEST_INTERVAL = 3

_MOST_TENSOR_STEPS = 20
# Histograms by default: those of the first parameters of the optimizer.
FIRST_PARAMETERS = 5


@dataclass(frozen=True)
class Landscape:
    """What a loss landscape is to be made of. Without intervals, no checkpoints are saved."""

    landscape_size: int = 40
    unit: str = "step"
    num_samples: int = 128
    create_landscape: Mapping[str, bool] | None = None
    intervals: tuple[tuple[int, ...], ...] = ()

    def is_chosen(self, unit: str, number: int) -> bool:
        """Whether the parameters after this step or epoch are saved."""
        return unit == self.unit and any(number in interval for interval in self.intervals)

    def to_json(self) -> dict[str, Any]:
        return {
            "landscape_size": self.landscape_size, "unit": self.unit,
            "num_samples": self.num_samples,
            "create_landscape": {"train": True, "result": True, **(self.create_landscape or {})},
            "intervals": [list(interval) for interval in self.intervals],
        }  # fmt: skip


@dataclass(frozen=True)
class SummaryOptions:
    collect_freq: int = 10
    collects: frozenset[str] = frozenset(SWITCHES)
    takes_histograms: bool = True
    histogram_regular: str | None = None
    landscape: Landscape | None = None
    custom_lineage_data: Mapping[str, Any] | None = None
    collect_tensor_freq: int | None = None
    max_file_size: int | None = None
    exports_npy: bool = False

    @classmethod
    def of(
        cls, collect_freq: Any = 10, num_process: Any = 32, collect_specified_data: Any = None,
        keep_default_action: Any = True, custom_lineage_data: Any = None,
        collect_tensor_freq: Any = None, max_file_size: Any = None, export_options: Any = None,
    ) -> "SummaryOptions":  # fmt: skip
        """Of what a script gives. Raises WrongType and WrongValue."""
        check_positive("collect_freq", collect_freq)
        check_positive("num_process", num_process, is_optional=True)
        check_positive("collect_tensor_freq", collect_tensor_freq, is_optional=True)
        check_positive("max_file_size", max_file_size, is_optional=True)
        check_type("keep_default_action", keep_default_action, bool, "a-bool")
        asked = _specified(collect_specified_data)
        defaults = {name: True for name in SWITCHES} | {HISTOGRAMS: None}
        data = {**(defaults if keep_default_action else {}), **asked}
        return cls(
            collect_freq=collect_freq,
            collects=frozenset(name for name in SWITCHES if data.get(name)),
            takes_histograms=HISTOGRAMS in data,
            histogram_regular=data.get(HISTOGRAMS),
            landscape=_landscape(data.get(LANDSCAPE)),
            custom_lineage_data={**_tuned(), **_custom_lineage(custom_lineage_data)},
            collect_tensor_freq=collect_tensor_freq,
            max_file_size=max_file_size,
            exports_npy=exports_npy(export_options),
        )

    def wants_parameter(self, place: int, name: str) -> bool:
        """Whether the distribution of this parameter is collected; `place` counts from 0."""
        if not self.takes_histograms:
            return False
        if self.histogram_regular is None:
            return place < FIRST_PARAMETERS
        return re.match(self.histogram_regular, name) is not None

    def is_due(self, number: int, is_first: bool) -> bool:
        return is_first or number % self.collect_freq == 0

    def tensor_steps(self, total: int) -> range:
        """At which of `total` steps tensors are collected, besides the first one."""
        if self.collect_tensor_freq is not None:
            return range(0, total + 1, self.collect_tensor_freq)
        others = range(0, total + 1, self.collect_freq)
        if len(others) <= _MOST_TENSOR_STEPS:
            return others
        apart = total // (_MOST_TENSOR_STEPS - 1)
        if apart > 1:
            return range(0, total + 1, apart)[:_MOST_TENSOR_STEPS]
        return range(total + 1)[: _MOST_TENSOR_STEPS + 1]  # 0 is not a step

    def are_tensors_due(self, number: int, is_first: bool, total: int | None, taken: int) -> bool:
        """`taken` is the number of steps whose tensors were collected. Where nobody knows the
        total, tensors are collected as everything else is, until they are enough.
        """
        if is_first:
            return True
        if total is not None:
            return number in self.tensor_steps(total)
        if self.collect_tensor_freq is not None:
            return number % self.collect_tensor_freq == 0
        return taken < _MOST_TENSOR_STEPS and number % self.collect_freq == 0


def exports_npy(given: Any) -> bool:
    """Whether `export_options` asks for tensors as files of numpy."""
    if given is None:
        return False
    check_type("export_options", given, dict, "a-dict")
    check_keys("export_options", given, ["tensor_format"])
    for value in given.values():
        check_type("tensor_format", value, (str, type(None)), "npy-or-none")
        check_choice("tensor_format", value, ["npy", None])
    return bool(given.get("tensor_format"))


def _specified(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    check_type("collect_specified_data", given, dict, "a-dict")
    check_keys("collect_specified_data", given, [*SWITCHES, HISTOGRAMS, LANDSCAPE])
    for name in SWITCHES:
        if name in given:
            check_type(name, given[name], bool, "a-bool")
    pattern = given.get(HISTOGRAMS)
    check_type(HISTOGRAMS, pattern, (str, type(None)), "a-pattern")
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise WrongValue.of(
            "errors/summary.not-a-pattern", name=HISTOGRAMS, value=repr(pattern), reason=error
        ) from None
    return dict(given)


def _landscape(given: Any) -> Landscape | None:
    check_type(LANDSCAPE, given, (dict, type(None)), "a-dict")
    if not given:
        return None
    check_keys(LANDSCAPE, given, _LANDSCAPE_KEYS)
    found = {**Landscape().to_json(), **given}
    size = found["landscape_size"]
    check_type("landscape_size", size, int, "a-positive-integer")
    if not _SMALLEST_LANDSCAPE <= size <= _LARGEST_LANDSCAPE:
        raise WrongValue.of("errors/summary.landscape-size", value=size)
    check_type("unit", found["unit"], str, "a-string")
    check_choice("unit", found["unit"], UNITS)
    check_positive("num_samples", found["num_samples"])
    check_type("create_landscape", found["create_landscape"], dict, "a-dict")
    check_keys("create_landscape", found["create_landscape"], ["train", "result"])
    for name, value in found["create_landscape"].items():
        check_type(f"create_landscape: {name}", value, bool, "a-bool")
    return Landscape(**{**found, "intervals": _intervals(found["intervals"])})


def _intervals(given: Any) -> tuple[tuple[int, ...], ...]:
    check_type("intervals", given, list, "intervals")
    for interval in given:
        check_type("intervals", interval, list, "intervals")
        if len(interval) < _SHORTEST_INTERVAL:
            raise WrongValue.of("errors/summary.short-interval", value=interval)
        for number in interval:
            check_type("intervals", number, int, "intervals")
    return tuple(tuple(interval) for interval in given)


def _custom_lineage(given: Any) -> dict[str, Any]:
    check_type("custom_lineage_data", given, (dict, type(None)), "a-dict")
    for name, value in (given or {}).items():
        check_type(f"custom_lineage_data: {name!r}", name, str, "a-string")
        types = (str, int, float, bool)
        check_type(f"custom_lineage_data: {name}", value, types, "text-or-number")
    return dict(given or {})


def _tuned() -> dict[str, Any]:
    """Lineage from the tuner's variable; what cannot be used is reported, as MindSpore does."""
    text = os.environ.get(TUNER_VARIABLE)
    if not text:
        return {}
    if len(text) > _MOST_TUNER_CHARACTERS:
        _ignore_tuner(message("recording.summary-tuner-long", most=_MOST_TUNER_CHARACTERS))
        return {}
    try:
        data = json.loads(text)
    except ValueError as error:
        _ignore_tuner(str(error))
        return {}
    found = data.get("custom_lineage_data") if isinstance(data, dict) else None
    try:
        return _custom_lineage(found)
    except WrongType as error:
        _ignore_tuner(error.what)
        return {}


def _ignore_tuner(reason: str) -> None:
    notices.write(notice("summary-tuner", variable=TUNER_VARIABLE, reason=reason))
