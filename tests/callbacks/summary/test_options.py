"""Options of SummaryCollector: MindSpore's meaning, defaults and types of errors."""

import json
from typing import Any

import pytest

from strobe.callbacks.summary.errors import WrongType, WrongValue
from strobe.callbacks.summary.options import SWITCHES, TUNER_VARIABLE, Landscape, SummaryOptions
from strobe.errors import UsageError
from strobe.messages import CHINESE, in_language


def landscape(**given: Any) -> dict[str, Any]:
    return {"collect_specified_data": {"collect_landscape": given}}


# Options, the name that the error has, and the type that MindSpore raises.
WRONG: list[tuple[dict[str, Any], str, type[Exception]]] = [
    ({"collect_freq": 0}, "collect_freq", ValueError),
    ({"collect_freq": "10"}, "collect_freq", TypeError),
    ({"collect_freq": True}, "collect_freq", TypeError),
    ({"num_process": "x"}, "num_process", TypeError),
    ({"collect_tensor_freq": -1}, "collect_tensor_freq", ValueError),
    ({"collect_tensor_freq": 1.5}, "collect_tensor_freq", TypeError),
    ({"max_file_size": 0}, "max_file_size", ValueError),
    ({"max_file_size": "4G"}, "max_file_size", TypeError),
    ({"keep_default_action": 1}, "keep_default_action", TypeError),
    ({"custom_lineage_data": []}, "custom_lineage_data", TypeError),
    ({"custom_lineage_data": {1: "x"}}, "custom_lineage_data", TypeError),
    ({"custom_lineage_data": {"a": [1]}}, "custom_lineage_data: a", TypeError),
    ({"export_options": "npy"}, "export_options", TypeError),
    ({"export_options": {"format": "npy"}}, "export_options", ValueError),
    ({"export_options": {"tensor_format": "pt"}}, "tensor_format", ValueError),
    ({"export_options": {"tensor_format": 1}}, "tensor_format", TypeError),
    ({"collect_specified_data": [1]}, "collect_specified_data", TypeError),
    ({"collect_specified_data": {1: True}}, "collect_specified_data", TypeError),
    ({"collect_specified_data": {"collect_loss": True}}, "collect_specified_data", ValueError),
    *(({"collect_specified_data": {name: 1}}, name, TypeError) for name in SWITCHES),
    ({"collect_specified_data": {"histogram_regular": 5}}, "histogram_regular", TypeError),
    ({"collect_specified_data": {"histogram_regular": "("}}, "histogram_regular", ValueError),
    ({"collect_specified_data": {"collect_landscape": 5}}, "collect_landscape", TypeError),
    (landscape(size=5), "collect_landscape", ValueError),
    (landscape(landscape_size=2), "landscape_size", ValueError),
    (landscape(landscape_size=257), "landscape_size", ValueError),
    (landscape(landscape_size="40"), "landscape_size", TypeError),
    (landscape(unit="batch"), "unit", ValueError),
    (landscape(unit=1), "unit", TypeError),
    (landscape(num_samples="many"), "num_samples", TypeError),
    (landscape(create_landscape=True), "create_landscape", TypeError),
    (landscape(create_landscape={"test": True}), "create_landscape", ValueError),
    (landscape(create_landscape={"train": 1}), "create_landscape", TypeError),
    (landscape(intervals=5), "intervals", TypeError),
    (landscape(intervals=[5]), "intervals", TypeError),
    (landscape(intervals=[[1, 2]]), "interval", ValueError),
    (landscape(intervals=[[1, 2, "3"]]), "intervals", TypeError),
]


@pytest.mark.parametrize("given, name, kind", WRONG)
def test_a_wrong_value_raises_mindspores_type_and_names_the_option(given, name, kind):
    with pytest.raises(kind) as caught:
        SummaryOptions.of(**given)
    error = caught.value
    assert isinstance(error, UsageError) and name in error.what
    assert isinstance(error, (WrongType, WrongValue))
    assert name in in_language(error.what, CHINESE) or name == "interval"


@pytest.mark.parametrize("total, tensors, others", [(600, 20, 61), (20, 3, 3)])
def test_tensors_are_collected_at_most_20_times_by_default(total, tensors, others):
    options = SummaryOptions.of(collect_freq=10)
    steps = range(1, total + 1)
    due = [n for n in steps if options.are_tensors_due(n, n == 1, total, 0)]
    assert len(due) == tensors
    assert len([n for n in steps if options.is_due(n, n == 1)]) == others


def test_steps_of_tensors_are_those_of_mindspore():
    assert list(SummaryOptions.of(collect_tensor_freq=7).tensor_steps(30)) == [0, 7, 14, 21, 28]
    assert list(SummaryOptions.of(collect_freq=1).tensor_steps(30)) == list(range(21))
    assert SummaryOptions.of(collect_freq=1).tensor_steps(600)[1] == 600 // 19


def test_without_a_total_tensors_end_after_20_steps():
    options, taken = SummaryOptions.of(collect_freq=2), []
    for step in range(1, 101):
        if options.are_tensors_due(step, step == 1, None, len(taken)):
            taken.append(step)
    assert taken == [1, *range(2, 39, 2)]


def test_specified_data_with_and_without_the_defaults():
    specified = {"collect_metric": False, "histogram_regular": "conv"}
    kept = SummaryOptions.of(collect_specified_data=specified)
    assert kept.collects == set(SWITCHES) - {"collect_metric"}
    assert kept.wants_parameter(9, "conv1.weight") and not kept.wants_parameter(0, "fc.conv")
    alone = SummaryOptions.of(
        collect_specified_data={"collect_metric": True}, keep_default_action=False
    )
    assert alone.collects == {"collect_metric"} and not alone.takes_histograms
    nothing = SummaryOptions.of(keep_default_action=False)
    assert not nothing.collects and not nothing.takes_histograms


def test_by_default_the_first_five_parameters_are_wanted():
    options = SummaryOptions.of()
    assert [options.wants_parameter(place, "any") for place in range(6)] == [True] * 5 + [False]


def test_checkpoints_for_a_landscape_need_intervals():
    assert SummaryOptions.of().landscape is None
    asked = SummaryOptions.of(**landscape(landscape_size=20)).landscape
    assert asked == Landscape(20, create_landscape={"train": True, "result": True})
    assert not any(asked.is_chosen("step", number) for number in range(30))
    found = SummaryOptions.of(**landscape(unit="epoch", intervals=[[1, 2, 3], [5, 6, 7]])).landscape
    assert found is not None
    assert [n for n in range(10) if found.is_chosen("epoch", n)] == [1, 2, 3, 5, 6, 7]
    assert not found.is_chosen("step", 1)


def test_the_tuners_variable_adds_lineage_below_the_scripts_own(monkeypatch, capsys):
    tuned = {"custom_lineage_data": {"lr": 0.1, "model": "tuned"}}
    monkeypatch.setenv(TUNER_VARIABLE, json.dumps(tuned))
    found = SummaryOptions.of(custom_lineage_data={"model": "own"}).custom_lineage_data
    assert found == {"lr": 0.1, "model": "own"}
    monkeypatch.setenv(TUNER_VARIABLE, "{")
    assert SummaryOptions.of().custom_lineage_data == {}
    assert TUNER_VARIABLE in capsys.readouterr().err
