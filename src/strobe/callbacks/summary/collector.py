"""SummaryCollector: what a training reports about itself, with MindSpore's options and names.

It is a callback of MindSpore, Lightning and transformers, whichever is imported when it is made;
a plain loop calls `step` after each update:

    with strobe.SummaryCollector("summary", collect_freq=10) as collector:
        for inputs, labels in loader:
            ...
            collector.step(loss=loss, model=model, inputs=inputs, optimizer=optimizer)
"""

import atexit
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from strobe.callbacks.summary import contents, trainers
from strobe.callbacks.summary.checkpoints import Checkpoints
from strobe.callbacks.summary.destination import Destination, checked_folder
from strobe.callbacks.summary.options import SummaryOptions
from strobe.callbacks.summary.parameters import ParameterHistograms
from strobe.callbacks.summary.plugin_values import log_value
from strobe.collect.metrics.histograms import histogram_job
from strobe.collect.notices import notice

TOOL = "SummaryCollector"
LOSS_TAG, INPUT_TAG = "loss/auto", "input_data/auto"


class _Unset:
    """No summary_dir: the run that records, or the one that strobe.log would write."""

    def __repr__(self) -> str:
        return "the recorded run"


_UNSET = _Unset()

# For those that a script does not close.
_collectors: "weakref.WeakSet[SummaryCollector]" = weakref.WeakSet()


class SummaryCollector(trainers.TrainerCalls):
    """`summary_dir` is the run's folder where nothing records the process already."""

    def __new__(cls, *given: Any, **options: Any) -> "SummaryCollector":
        made: SummaryCollector = object.__new__(trainers.callback_class(cls))
        return made

    def __init__(
        self, summary_dir: Any = _UNSET, collect_freq: int = 10, num_process: int = 32,
        collect_specified_data: dict[str, Any] | None = None, keep_default_action: bool = True,
        custom_lineage_data: dict[str, Any] | None = None, collect_tensor_freq: int | None = None,
        max_file_size: int | None = None, export_options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """`num_process` has no effect: one thread writes."""
        folder = None
        if summary_dir is not _UNSET:
            from strobe.mindspore import common_folder

            folder = checked_folder("summary_dir", summary_dir)
            folder = Path(common_folder(folder))
        self.options = SummaryOptions.of(
            collect_freq, num_process, collect_specified_data, keep_default_action,
            custom_lineage_data, collect_tensor_freq, max_file_size, export_options,
        )  # fmt: skip
        self._given = (summary_dir, self.options)
        self._collects = set(self.options.collects)
        self._to = Destination(TOOL, folder, self.options.max_file_size)
        self._parameters = ParameterHistograms(self._to)
        self._checkpoints = Checkpoints(self._to, self.options.landscape)
        is_exported = self.options.exports_npy
        self._export_folder = f"export_{int(time.time())}" if is_exported else ""
        self._steps = self._tensor_steps = 0
        self._last: int | None = None
        self._facts: dict[str, Any] = {}
        self._prepare_trainer()
        _collectors.add(self)

    def __reduce__(self) -> Any:
        """A copy in another process begins from the start."""
        folder, options = self._given
        return _restored, (None if folder is _UNSET else str(folder), options)

    @property
    def run_path(self) -> Path | None:
        """The folder that is recorded to, once there is one."""
        return self._to.run

    def __enter__(self) -> "SummaryCollector":
        return self

    def __exit__(self, *_: object) -> None:
        """MindSpore leaves its callbacks after training, and may enter them again to evaluate."""
        if not self._mindspore.is_used:
            self.close()

    def step(
        self, loss: Any = None, model: Any = None, inputs: Any = None, *, step: int | None = None,
        optimizer: Any = None, tensors: Mapping[str, Any] | None = None,
        epoch: int | None = None, total_steps: int | None = None,
        lineage: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """At the end of a step, after its update. Steps count from 1 by default.

        `model` is a module of PyTorch or a tree of arrays; `tensors` are collected by
        `collect_tensor_freq`; `total_steps` makes its default spread them over the training.
        """
        number = (self._last or 0) + 1 if step is None else step
        if number == self._last:
            return  # of several batches of one update, the first
        is_first, self._last = self._steps == 0, number
        self._steps += 1

        def parameters() -> Iterable[tuple[str, Any]]:
            return contents.named_parameters(model) if model is not None else ()

        def collect() -> None:
            self._parameters.step_ended(number)
            if is_first:
                self._begin_lineage(number, {
                    "network": type(model).__name__ if model is not None else None,
                    "optimizer": type(optimizer).__name__ if optimizer is not None else None,
                    "learning_rate": contents.learning_rate(optimizer),
                    "batch_size": contents.batch_size(inputs),
                    **(lineage or {}),
                })  # fmt: skip
            if self.options.is_due(number, is_first):
                self.take_all(loss, parameters(), inputs, number)
            self._take_due_tensors(tensors or {}, number, is_first, total_steps)
            self._checkpoints.save("step", number, model)
            if epoch is not None:
                self._facts["epoch"] = epoch

        self._to.guarded(f"{TOOL}.step", collect)

    def close(self) -> None:
        """After training: writes what waits. A run of its own has ended then."""
        self.finish()
        self._to.close()

    def finish(self) -> None:
        """Training has ended: what is known at its end. An evaluation may follow."""

        def end() -> None:
            self._parameters.close()
            self._end_lineage()
            self._checkpoints.write_metadata()

        if self._steps:
            self._to.guarded(f"{TOOL}.finish", end)
            self._steps = 0
        self._to.flush()

    def take_all(
        self, loss: Any, named: Iterable[tuple[str, Any]], inputs: Any, number: int
    ) -> None:
        """What is collected by `collect_freq`. One of them failing leaves the others."""
        self.guarded("loss", lambda: self.take_metric(loss, number))
        self.guarded("parameters", lambda: self.take_parameters(named, number))
        self.guarded("inputs", lambda: self.take_inputs(inputs, number))

    def take_metric(self, loss: Any, number: int) -> None:
        if "collect_metric" not in self._collects or loss is None:
            return
        loss = contents.mean_of(contents.first_of(loss))
        if loss is None:
            return
        self._to.scalars({LOSS_TAG: loss}, number)
        self._facts["loss"] = loss

    def take_parameters(self, named: Iterable[tuple[str, Any]], number: int) -> None:
        if not self.options.takes_histograms:
            return
        wanted = [
            (f"{name}/auto", values) for place, (name, values) in enumerate(named)
            if self.options.wants_parameter(place, name)
        ]  # fmt: skip
        self._parameters.take(((n, v) for n, v in wanted if contents.is_torch(v)), number)
        for name, values in wanted:
            if not contents.is_torch(values):
                made = histogram_job(name, values, number, None, self._to.source)
                self._to.histogram(*made)

    def take_inputs(self, inputs: Any, number: int) -> None:
        if "collect_input_data" not in self._collects or inputs is None:
            return
        batch = contents.first_of(inputs)
        if not contents.image_order(batch):
            self._collects.discard("collect_input_data")
            shape = tuple(getattr(batch, "shape", ()))
            self._to.problem(notice("summary-no-images", shape=shape))
            return
        self._to.submit(contents.batch_image(INPUT_TAG, batch, number, self._to.source))

    def _take_due_tensors(
        self, tensors: Mapping[str, Any], number: int, is_first: bool, total: int | None
    ) -> None:
        if tensors and self.options.are_tensors_due(number, is_first, total, self._tensor_steps):
            self._tensor_steps += 1
            for tag, values in tensors.items():
                self.take_tensor(tag, values, number)

    def take_tensor(self, tag: str, values: Any, number: int) -> None:
        log_value(self._to, "tensor", tag, values, number, self._export_folder)

    def take_value(self, plugin: str, tag: str, values: Any, number: int) -> None:
        """Of a summary operator of MindSpore; `plugin` is one of ARRAYS."""
        log_value(self._to, plugin, tag, values, number, self._export_folder)

    def _begin_lineage(self, number: int, known: Mapping[str, Any]) -> None:
        """From the first step on, so that the run of a killed training has it."""
        known = {name: value for name, value in known.items() if value is not None}
        if self.options.custom_lineage_data:
            self._to.lineage("custom", self.options.custom_lineage_data, number)
        if "collect_train_lineage" in self._collects:
            self._to.lineage("train", known, number)
            self._to.hyperparameters({n: v for n, v in known.items() if n in _HYPERPARAMETERS})
        if "collect_graph" in self._collects:
            self._to.problem(notice("summary-not-yet", what="collect_graph"))
        self._checkpoints.begin()

    def _end_lineage(self) -> None:
        if "collect_train_lineage" in self._collects:
            facts = {name: contents.read(value) for name, value in self._facts.items()}
            self._to.lineage("train", facts, self._last)

    def take_evaluation(self, metrics: Mapping[str, Any], **known: Any) -> None:
        """The results of an evaluation."""
        if "collect_eval_lineage" in self._collects and metrics:
            self._to.lineage("evaluation", {**metrics, **known}, self._last)

    def guarded(self, what: str, action: Callable[[], Any]) -> Any:
        return self._to.guarded(f"{TOOL}: {what}", action)


# Facts of a training that are settings of it, by MindSpore's names.
_HYPERPARAMETERS = {
    "optimizer", "learning_rate", "loss_function", "epoch", "parallel_mode", "device_num",
    "batch_size",
}  # fmt: skip


def _restored(folder: str | None, options: SummaryOptions) -> SummaryCollector:
    made = SummaryCollector() if folder is None else SummaryCollector(folder)
    made.options = options
    made._given = (made._given[0], options)
    made._collects = set(options.collects)
    made._checkpoints = Checkpoints(made._to, options.landscape)
    return made


def _at_exit() -> None:
    for one in list(_collectors):
        one.finish()


# Before the runs are closed: handlers run in reverse order of registration.
atexit.register(_at_exit)
