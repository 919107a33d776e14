import pytest

from strobe.errors import UsageError
from strobe.model.option_values import one, parsed, without_effect
from strobe.model.options import Options


@pytest.mark.parametrize(
    "wrong, nearest",
    [
        ("with_stacks", "with_stack"),
        ("profil_memory", "profile_memory"),
        ("aicore_metric", "aicore_metrics"),
        ("data_proces", "data_process"),
    ],
)
def test_an_unknown_option_suggests_the_nearest(wrong: str, nearest: str):
    with pytest.raises(UsageError) as caught:
        Options.from_json({wrong: True})
    assert (caught.value.what, caught.value.hint) == (
        f"unknown option: {wrong}",
        f"Did you mean {nearest}?",
    )


@pytest.mark.parametrize(
    "old, name, value",
    [
        ({"start": False}, "start_profile", False),
        ({"init_start_profile": False}, "start_profile", False),
        ({"is_show_op_path": False}, "modules", False),
        ({"with_backtrace": True}, "with_stack", True),
        ({"host_stack": 1}, "with_stack", True),
        ({"aicore_metrics": 0}, "hardware_metrics", "pipeline"),
        ({"aicore_metrics": -1}, "hardware_metrics", None),
        ({"aic_metrics": "L2Cache"}, "hardware_metrics", "cache"),
        ({"profile_level": 2}, "profiler_level", 2),
        ({"profiler_level": "Level0"}, "profiler_level", 0),
        ({"profiler_level": -1}, "profiler_level", 1),
        ({"profile_framework": 1}, "profile_framework", "time"),
        ({"analyse_mode": 0}, "analyse_mode", "sync"),
        ({"analyse_mode": -1}, "analyse_mode", None),
        ({"subgraph": "Gradients"}, "subgraph", "backward"),
        ({"format": "chrome_timeline.json"}, "formats", ("chrome_timeline.json",)),
        ({"profile_device": 0}, "profile_device", False),
        ({"path": "there"}, "output_path", "there"),
        ({"schedule": "2:1:5"}, "schedule", (2, 1, 5, 0, 0)),
        ({"ranks": "0,8-10"}, "ranks", (0, 8, 9, 10)),
        ({"profile_rank_ids": [3, 1]}, "ranks", (1, 3)),
    ],
)
def test_older_names_and_values_are_understood(old: dict, name: str, value: object):
    assert getattr(Options.from_json(old), name) == value


@pytest.mark.parametrize(
    "given",
    [
        {"light": True, "whole": True},
        {"schedule": [1, 1, 1], "steps": [3, 5]},
        {"light": True, "with_stack": True},
        {"light": True, "sample_rate": 10},
        {"op_time": False, "profile_memory": True},
        {"op_time": False, "whole": True},
        {"with_flops": True, "record_shapes": False},
        {"is_detail": False, "record_shapes": True},
        {"start": True, "start_profile": False},
    ],
)
def test_contradictions_are_refused(given: dict):
    with pytest.raises(UsageError) as caught:
        Options.from_json(given)
    assert "contradict" in caught.value.what or "different values" in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize(
    "given",
    [
        {"steps": [5, 5]}, {"steps": "10-20"}, {"steps": 3}, {"every": [3, 4]},
        {"schedule": [1, 1, 0]}, {"ranks": "0-"}, {"ranks": [-1]}, {"ranks": True},
        {"schedule": {"wait": 1, "activ": 2}}, {"timeline_limit": 0},
        {"timeline_limit": "much"}, {"sample_rate": -1}, {"sample_ms": 1}, {"with_stack": "yes"},
        {"with_stack": 2}, {"profiler_level": 3}, {"profiler_level": True}, {"output_path": 3},
        {"output_path": ""}, {"format": "svg"}, {"formats": 3}, {"subgraph": "none"},
        {"profile_framework": "memory"}, {"aicore_metrics": 99}, {"op_time": None},
    ],
)  # fmt: skip
def test_a_value_that_makes_no_sense_is_told_with_what_would(given: dict):
    with pytest.raises(UsageError) as caught:
        Options.from_json(given)
    assert caught.value.what and caught.value.hint


def test_a_level_says_what_was_not_said():
    lowest = Options.from_json({"profiler_level": 0})
    assert not (lowest.record_shapes or lowest.with_flops or lowest.modules)
    highest = Options.from_json({"profiler_level": 2, "profile_memory": False})
    assert (highest.profile_memory, highest.hardware_metrics) == (False, "all")
    types_only = Options.from_json({"is_detail": False})
    assert not (types_only.record_shapes or types_only.with_flops or types_only.modules)
    assert not Options.from_json({"record_shapes": False}).with_flops


def test_what_no_machine_of_ours_has_is_accepted_and_said():
    assert Options.from_json({"hbm_ddr": True}) == Options()
    assert without_effect({"hbm_ddr": True, "light": True}) == [
        "hbm_ddr has no effect: memory of Ascend devices is not measured"
    ]


def test_one_value_is_read_by_itself():
    assert one("steps", "500:5") == (500, 5)
    with pytest.raises(UsageError) as caught:
        one("steps", "10-20", "--steps")
    assert "10:20" in caught.value.hint


@pytest.mark.parametrize("text", ["{", "3", "[]", ""])
def test_what_is_no_json_object_is_told_with_an_example(text: str):
    with pytest.raises(UsageError) as caught:
        parsed(text, "STROBE_OPTIONS")
    assert "STROBE_OPTIONS" in caught.value.what and caught.value.hint
