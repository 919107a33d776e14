"""What a collector does in the modes of MindSpore that a CPU does not have: sink mode."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import strobe
from strobe.callbacks.summary import mindspore_training
from tests.callbacks.summary.rows import rows


class Parameters(SimpleNamespace):
    """Of a callback: like MindSpore's, a dict with attributes."""

    def get(self, name: str) -> Any:
        return getattr(self, name, None)


class Network:
    pass


@pytest.fixture
def params(monkeypatch):
    values = [("tensor", "logits", np.ones(2)), ("scalar", "first", np.ones(1))]
    monkeypatch.setattr(mindspore_training, "operator_values", lambda: values)
    monkeypatch.setattr(mindspore_training, "_device", lambda: "Ascend")
    optimizer = SimpleNamespace(parameters=[], learning_rate=0.5)
    return Parameters(
        mode="train", dataset_sink_mode=True, list_callback=[], epoch_num=6, batch_num=4,
        cur_step_num=0, cur_epoch_num=0, net_outputs=np.float64(0.1), optimizer=optimizer,
        network=Network(), train_network=Network(), loss_fn=Network(), parallel_mode="stand_alone",
        device_number=1, train_dataset=None, valid_dataset=None,
        train_dataset_element=np.zeros((2, 1, 4, 4)),
    )  # fmt: skip


def train(folder, params, is_sink: bool, **options: Any):
    """In sink mode, a step ends once in an epoch."""
    params.dataset_sink_mode = is_sink
    context = SimpleNamespace(original_args=lambda: params)
    given = {"collect_specified_data": {"collect_dataset_graph": False}, **options}
    with strobe.SummaryCollector(folder, **given) as collector:
        collector.on_train_begin(context)
        for epoch in range(1, params.epoch_num + 1):
            params.cur_epoch_num = epoch
            for batch in range(1, params.batch_num + 1):
                params.cur_step_num = (epoch - 1) * params.batch_num + batch
                if not is_sink or batch == params.batch_num:
                    collector.on_train_step_end(context)
            collector.on_train_epoch_end(context)
        collector.on_train_end(context)
    run = collector.run_path
    collector.close()
    return run


def test_in_sink_mode_frequencies_count_epochs(params, tmp_path):
    run = train(tmp_path / "run", params, True, collect_freq=2, collect_tensor_freq=3)
    query = "select step from scalars where tag = 'loss/auto' order by step"
    assert rows(run, query) == [(4,), (8,), (16,), (24,)]
    assert rows(run, "select step from tensors order by step") == [(4,), (12,), (24,)]


def test_in_sink_mode_batches_of_a_device_are_missing_and_named(params, tmp_path):
    run = train(tmp_path / "run", params, True)
    assert rows(run, "select * from images") == []
    problems = [what for (what,) in rows(run, "select what from problems")]
    assert any("Ascend" in what for what in problems)


def test_apart_from_sink_mode_the_last_step_of_an_epoch_is_collected_once(params, tmp_path):
    run = train(tmp_path / "run", params, False, collect_freq=4)
    query = "select step from scalars where tag = 'loss/auto' order by step"
    assert rows(run, query) == [(step,) for step in (1, 4, 8, 12, 16, 20, 24)]
    assert rows(run, "select count(*) from images") == [(7,)]


def test_another_mode_and_a_second_collector_are_errors(params, tmp_path):
    collector = strobe.SummaryCollector(tmp_path / "run")
    context = SimpleNamespace(original_args=lambda: params)
    params.list_callback = [collector, strobe.SummaryCollector(tmp_path / "run")]
    with pytest.raises(ValueError, match="2 SummaryCollectors"):
        collector.begin(context)
    params.list_callback, params.mode = [collector], "predict"
    with pytest.raises(ValueError, match="mode cannot be 'predict'"):
        collector.begin(context)


def test_an_evaluation_leaves_the_results_and_the_run_as_it_was(params, tmp_path):
    context = SimpleNamespace(original_args=lambda: params)
    run = train(tmp_path / "run", params, False)
    collector = strobe.SummaryCollector(tmp_path / "eval")
    params.mode, params.metrics = "eval", {"accuracy": 0.5}
    collector.on_eval_begin(context)
    collector.on_eval_end(context)
    evaluated = collector.run_path
    collector.close()
    facts = rows(evaluated, "select kind, name, number from lineage")
    assert facts == [("evaluation", "accuracy", 0.5)]
    assert rows(run, "select * from lineage where kind = 'evaluation'") == []
