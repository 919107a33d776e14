"""SummaryRecord: values that a script adds by plugin and name, recorded step by step."""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from strobe.callbacks.summary import mindspore_values
from strobe.callbacks.summary.contents import is_torch
from strobe.callbacks.summary.destination import Destination, checked_folder
from strobe.callbacks.summary.errors import (
    WrongState,
    WrongType,
    WrongValue,
    check_choice,
    check_type,
)
from strobe.callbacks.summary.options import exports_npy
from strobe.callbacks.summary.plugin_values import ARRAYS, check_value, log_value
from strobe.collect.metrics.arrays import tensor_job
from strobe.collect.notices import notice
from strobe.messages import message

TOOL = "SummaryRecord"
GRAPH, LANDSCAPE = "graph", "landscape"
# Plugins of lineage: the kind of the facts, MindSpore's message, and how it is read.
_LINEAGE: dict[str, tuple[str, str, Callable[[Any], dict[str, Any]]]] = {
    "train_lineage": ("train", "TrainLineage", mindspore_values.train_facts),
    "eval_lineage": ("evaluation", "EvaluationLineage", mindspore_values.evaluation_facts),
    "dataset_graph": (
        "dataset", "DatasetGraph",
        lambda found: {"dataset_graph": json.dumps(mindspore_values.as_dict(found))},
    ),
    "custom_lineage_data": ("custom", "UserDefinedInfo", mindspore_values.custom_facts),
}  # fmt: skip
PLUGINS = (*ARRAYS, *_LINEAGE, GRAPH, LANDSCAPE)
_AFFIX = re.compile(r"\w+[0-9a-zA-Z_.]*", re.ASCII)

_lock = threading.Lock()
_open = 0


class SummaryRecord:
    """`log_dir` is the run's folder where nothing records the process already.

    `file_prefix` and `file_suffix` have no effect: the run has its own files.
    """

    def __init__(
        self, log_dir: str | os.PathLike[str], file_prefix: str = "events",
        file_suffix: str = "_MS", num_process: int = 32, network: Any = None,
        max_file_size: int | None = None, raise_exception: bool = False,
        export_options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        from strobe.mindspore import common_folder

        folder = Path(common_folder(checked_folder("log_dir", log_dir)))
        for name, affix in (("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            check_type(name, affix, str, "a-string")
            if not _AFFIX.fullmatch(affix):
                raise WrongValue.of("errors/summary.bad-affix", name=name, value=repr(affix))
        check_type("max_file_size", max_file_size, (int, type(None)), "a-positive-integer")
        check_type("raise_exception", raise_exception, bool, "a-bool")
        self._export_folder = f"export_{int(time.time())}" if exports_npy(export_options) else ""
        if max_file_size is not None and max_file_size <= 0:
            max_file_size = None  # no limit, as MindSpore takes it
        self._take_turn()
        self._to = Destination(TOOL, folder, max_file_size)
        self._is_closed = False
        self._mode = "train"
        self._values: dict[str, dict[str, Any]] = {}
        self._network = network
        if network is not None:
            self._to.problem(notice("summary-not-yet", what=f"{TOOL}(network=…)"))

    @staticmethod
    def _take_turn() -> None:
        """One at a time, as MindSpore has it: their operators' values go to the first that asks."""
        global _open
        with _lock:
            if _open:
                raise WrongState.of("errors/summary.two-records")
            _open += 1

    @property
    def log_dir(self) -> str:
        """The folder that is written to."""
        return str(self._to.run or self._to.folder)

    run_path = property(lambda self: self._to.run)

    def __enter__(self) -> "SummaryRecord":
        if self._is_closed:
            raise WrongValue.of("errors/summary.closed")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_mode(self, mode: str) -> None:
        """In the mode `eval`, values of summary operators are not recorded."""
        check_choice("mode", mode, ("train", "eval"))
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """A value for the next `record`. Of one name, the last value is recorded.

        Lineage is a message of MindSpore, or a dict of facts.
        """
        check_choice("plugin", plugin, PLUGINS)
        if plugin in ARRAYS:
            check_value(plugin, name, value)
            value = _copied(value)
        elif plugin in _LINEAGE:
            _check_message(plugin, value)
        waiting = self._values.setdefault(plugin, {})
        if plugin in ARRAYS and name in waiting:
            self._to.warn(notice("summary-duplicate", name=repr(f"{name}/{plugin}")))
        waiting[name] = value

    def record(
        self, step: int, train_network: Any = None,
        plugin_filter: Callable[[str], bool] | None = None,
    ) -> bool:  # fmt: skip
        """Record what was added, and what summary operators computed, for this step.

        False if the record is closed. What `plugin_filter` refuses is dropped.
        """
        check_type("step", step, int, "an-integer")
        if self._is_closed:
            self._to.warn(message("errors/summary.closed"))
            return False
        values, self._values = self._values, {}
        if self._mode == "train" and "mindspore" in sys.modules:
            found = self._to.guarded(
                "summary operators", lambda: list(mindspore_values.operator_values())
            )
            for plugin, tag, value in found or ():
                values.setdefault(plugin, {})[tag] = value
        for plugin, named in values.items():
            if plugin_filter is None or plugin_filter(plugin):
                for name, value in named.items():
                    self._log(plugin, name, value, step)
        return True

    def _log(self, plugin: str, name: str, value: Any, step: int) -> None:
        self._to.guarded(f"{TOOL}: {name}", lambda: self._logged(plugin, name, value, step))

    def _logged(self, plugin: str, name: str, value: Any, step: int) -> None:
        if plugin in ARRAYS:
            log_value(self._to, plugin, name, value, step, self._export_folder)
        elif plugin in _LINEAGE:
            kind, _, facts = _LINEAGE[plugin]
            found = value if isinstance(value, Mapping) else facts(value)
            self._to.lineage(kind, found, step)
        elif plugin == LANDSCAPE:
            for place, array in mindspore_values.landscape_parts(value):
                made = tensor_job(name + place, array, step, self._to.source, "loss_landscape")
                self._to.submit(made)
            metadata = json.dumps(mindspore_values.as_dict(value.metadata))
            self._to.text(f"{name}/metadata", metadata, step)
        else:
            self._to.problem(notice("summary-not-yet", what=f"{TOOL}: {name}"))

    def flush(self) -> None:
        self._to.flush()

    def close(self) -> None:
        """Write what waits. A run of its own has ended then."""
        global _open
        if self._is_closed:
            return
        self._is_closed = True
        with _lock:
            _open -= 1
        self._to.close()


def _copied(value: Any) -> Any:
    """The script may change its own before it is recorded."""
    if is_torch(value):
        return value.detach().clone()
    if hasattr(value, "asnumpy"):  # MindSpore
        return value.asnumpy().copy()
    return value.copy() if hasattr(value, "copy") else value


def _check_message(plugin: str, value: Any) -> None:
    accepted = _LINEAGE[plugin][1]
    if not isinstance(value, Mapping) and type(value).__name__ != accepted:
        raise WrongType.of(
            "errors/summary.not-a-message", plugin=plugin, accepted=accepted,
            value=type(value).__name__,
        )  # fmt: skip
