"""What SummaryCollector reads from the callbacks of MindSpore's Model."""

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from strobe.callbacks.summary import contents
from strobe.callbacks.summary.errors import WrongValue, check_choice
from strobe.callbacks.summary.mindspore_values import (
    dataset_facts,
    dataset_graph,
    operator_values,
)
from strobe.collect.notices import notice

_TRAIN, _EVAL = "train", "eval"


class MindSporeTraining:
    """Steps are those of `cur_step_num`. In sink mode, epochs are collected instead of steps."""

    def __init__(self, collector: Any) -> None:
        self._collector = collector
        self.is_used = False
        self._is_first, self._has_begun = True, False
        self._optimizer: Any = None
        self._tensor_steps: range | None = None
        self._is_sink = True

    @property
    def _to(self) -> Any:
        return self._collector._to

    def begin(self, run_context: Any) -> None:
        """Raises WrongValue, as MindSpore's does, for two collectors."""
        params = run_context.original_args()
        check_choice("mode", params.mode, [_TRAIN, _EVAL])
        found = [one for one in params.list_callback or () if isinstance(one, _kind())]
        if len(found) > 1:
            raise WrongValue.of("errors/summary.two-collectors", count=len(found))
        self.is_used = True
        if params.mode == _TRAIN:
            self._is_sink = bool(params.dataset_sink_mode)
            self._is_first, self._has_begun, self._tensor_steps = True, False, None

    def step_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        if params.mode == _TRAIN:
            self._collector.guarded("step", lambda: self._step(params))

    def epoch_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        if params.mode == _TRAIN:
            self._collector.guarded("epoch", lambda: self._epoch(params))

    def end(self, run_context: Any) -> None:
        params = run_context.original_args()
        if params.mode == _TRAIN:
            self._collector.guarded("end", lambda: self._ends(params))
            self._collector.finish()
        else:
            self._collector.guarded("evaluation", lambda: self._evaluation(params))

    def _step(self, params: Any) -> None:
        number = params.cur_step_num
        self._collector._last = number
        self._collector._steps += 1
        if not self._has_begun:
            self._has_begun = True
            self._begins(params, number)
        if not self._is_sink:
            self._collect(params, number)
        self._collector._checkpoints.save("step", number, _network(params))

    def _epoch(self, params: Any) -> None:
        # Apart from sink mode, the last step of the epoch was collected when it ended.
        if self._is_sink:
            self._collect(params, params.cur_epoch_num)
        epoch = params.cur_epoch_num
        self._collector._checkpoints.save("epoch", epoch, _network(params))

    def _collect(self, params: Any, current: int) -> None:
        """`current` counts what `collect_freq` counts; what is recorded has the step's number."""
        collector, options = self._collector, self._collector.options
        is_first, self._is_first = self._is_first, False
        if self._tensor_steps is None:
            total = params.epoch_num * (1 if self._is_sink else params.batch_num)
            self._tensor_steps = options.tensor_steps(total)
        is_due = options.is_due(current, is_first)
        are_tensors_due = is_first or current in self._tensor_steps
        step = params.cur_step_num
        if is_due:
            named = self._parameters(params)
            collector.take_all(self._loss(params), named, self._batch(params), step)
        if is_due or are_tensors_due:
            values = collector.guarded("summary operators", lambda: list(operator_values())) or ()
            self._take_operators(values, step, is_due, are_tensors_due)

    def _loss(self, params: Any) -> Any:
        output = contents.first_of(params.net_outputs)
        if output is None or isinstance(output, str):
            self._to.problem(notice("summary-no-loss"))
            return None
        return output

    def _batch(self, params: Any) -> Any:
        device = _device()
        if not self._is_sink or device == "CPU":
            return params.get("train_dataset_element")
        if "collect_input_data" in self._collector._collects:
            self._collector._collects.discard("collect_input_data")
            self._to.problem(notice("summary-sink-images", device=device))
        return None

    def _take_operators(
        self, values: Iterable[tuple[str, str, Any]], step: int, is_due: bool, are_tensors_due: bool
    ) -> None:
        for plugin, tag, value in values:
            if are_tensors_due if plugin == "tensor" else is_due:
                self._collector.take_value(plugin, tag, value, step)

    def _parameters(self, params: Any) -> Iterable[tuple[str, Any]]:
        optimizer = self._found_optimizer(params)
        if optimizer is None:
            return
        for parameter in optimizer.parameters:
            yield parameter.name, parameter

    def _found_optimizer(self, params: Any) -> Any:
        if self._optimizer is None:
            self._optimizer = params.optimizer or _optimizer_in(params.train_network)
        if self._optimizer is None:
            self._to.problem(notice("summary-no-optimizer"))
        return self._optimizer

    def _begins(self, params: Any, number: int) -> None:
        collector = self._collector
        optimizer = self._found_optimizer(params)
        rate = getattr(optimizer, "learning_rate", None)
        loss = params.loss_fn or _loss_in(params.train_network)
        collector._checkpoints.steps_per_epoch = params.batch_num
        collector._begin_lineage(number, {
            "network": type(params.network or params.train_network).__name__,
            "optimizer": type(optimizer).__name__ if optimizer is not None else None,
            "learning_rate": _number(rate),
            "loss_function": type(loss).__name__ if loss is not None else None,
            "epoch": params.epoch_num, "parallel_mode": str(params.parallel_mode),
            "device_num": params.device_number,
            **dataset_facts(params.train_dataset, "train"),
        })  # fmt: skip
        if "collect_dataset_graph" in collector._collects:
            graph = collector.guarded("dataset graph", lambda: dataset_graph(params.train_dataset))
            if graph:
                self._to.lineage("dataset", {"dataset_graph": graph}, number)

    def _ends(self, params: Any) -> None:
        """The loss of the last step, as MindSpore has it, whether it was collected or not."""
        loss = contents.mean_of(contents.first_of(params.net_outputs))
        facts = self._collector._facts
        if loss is not None:
            facts["loss"] = loss
        file = next((one.latest_ckpt_file_name for one in params.list_callback or ()
                     if hasattr(one, "latest_ckpt_file_name")), "")  # fmt: skip
        if file:
            facts["model_path"] = json.dumps({"ckpt": os.path.realpath(file)})
            facts["model_size"] = os.path.getsize(file)

    def _evaluation(self, params: Any) -> None:
        known = dataset_facts(params.valid_dataset, "valid")
        self._collector.take_evaluation(params.metrics or {}, **known)


def _kind() -> type:
    from strobe.callbacks.summary.collector import SummaryCollector

    return SummaryCollector


def _network(params: Any) -> Any:
    """The network without the cells that Model puts around it for training."""
    return params.network or params.train_network


def _optimizer_in(network: Any) -> Any:
    nn = sys.modules["mindspore"].nn
    for _, cell in network.cells_and_names():
        found = cell if isinstance(cell, nn.Optimizer) else getattr(cell, "optimizer", None)
        if isinstance(found, nn.Optimizer):
            return found
    return None


def _loss_in(network: Any) -> Any:
    base = sys.modules["mindspore"].nn.LossBase
    return next((cell for _, cell in network.cells_and_names() if isinstance(cell, base)), None)


def _number(rate: Any) -> Any:
    """Of a constant learning rate; a schedule has none."""
    if hasattr(rate, "asnumpy"):
        values = rate.asnumpy().reshape(-1)
        return float(str(values[0])) if len(values) else None  # 0.01, not 0.0099999998
    return rate if isinstance(rate, (int, float)) else None


def _device() -> str:
    return str(sys.modules["mindspore"].get_context("device_target"))
