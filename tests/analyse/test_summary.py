from strobe.analyse.summary import summarise
from tests.analyse.drawings import DEVICE, MODEL, MODEL_ARGS
from tests.helpers import make_run


def test_the_page_as_a_structure(tmp_path):
    counters = {
        "rank": [0] * 4,
        "ts_ns": [0, 1_000_000_000, 0, 0],
        "name": ["process_cpu_ns_total"] * 2 + ["cores_busy_milli", "core_0_busy_permille"],
        "value": [0.0, 1.5e9, 1800.0, 900.0],
    }
    page = summarise(make_run(tmp_path, MODEL, {**MODEL_ARGS, "counters": counters}))
    assert page["recorded"] == {
        "ranks": 1, "steps": 2, "steps_in_full": 1, "windows": 1, "events": 12, "operators": 7,
        "operator_steps": 1, "reasons": [],
        "cost": {"recorder_ns": 0, "slowed_ns": 0, "steps_ns": 2000, "writing_cpu_ns": 0},
    }  # fmt: skip
    assert page["steps"]["count"] == 2 and page["steps"]["outlier_count"] == 0
    top = page["operator_types"][0]
    assert (top["name"], top["self_ns_per_step"], top["share"]) == ("aten::mm", 180, 180 / 480)
    assert [row["scope"] for row in page["modules"]] == ["net.fc", "net"]
    assert page["machine"]["process_cores"] == 1.5
    assert page["machine"]["core_busy_ratios"] == [0.9]
    assert page["run"]["state"] == "finished" and page["problems"] == []


def test_a_run_without_anything_still_has_a_page(tmp_path):
    page = summarise(make_run(tmp_path, ""))
    assert page["steps"] == {
        "count": 0, "left_out": {"slowed": 0, "warm_up": 0}, "counted_slowed": 0, "rank_count": 1,
        "parts": [],
        "outlier_count": 0, "outliers": [],
    }  # fmt: skip
    assert page["operator_types"] == [] and page["machine"]["process_cores"] is None


def test_devices_and_their_kernels(tmp_path):
    page = summarise(make_run(tmp_path, DEVICE))
    # Both steps together: computing 420 + 100, and so on.
    assert page["devices"] == [
        {
            "rank": 0, "device": "cuda:0", "steps": 2, "dur_ns": 2000, "compute_ns": 520,
            "communication_ns": 250, "memory_ns": 50, "idle_ns": 1180,
        }
    ]  # fmt: skip
    top = page["kernels"][0]
    assert (top["name"], top["calls"], top["total_ns"], top["operator"]) == (
        "gemm", 2, 500, "aten::mm",
    )  # fmt: skip
    assert top["share"] == 500 / 970


def test_without_steps_a_device_is_told_from_its_first_work_to_its_last(tmp_path):
    without = "\n".join(line for line in DEVICE.splitlines() if "0/steps" not in line)
    without = without.replace("launcher=", "scope=").replace("parent=", "scope=")
    (device,) = summarise(make_run(tmp_path, without))["devices"]
    assert (device["steps"], device["dur_ns"], device["idle_ns"]) == (0, 1000, 180)


def test_without_a_device_nothing_is_said_of_one(tmp_path):
    page = summarise(make_run(tmp_path, MODEL, MODEL_ARGS))
    assert page["devices"] == [] and page["kernels"] == []


def test_an_imported_trace_has_its_steps_in_full(tmp_path):
    run = make_run(tmp_path, DEVICE)
    assert summarise(run)["recorded"]["steps_in_full"] == 0
    run.manifest.recorded_by = "strobe import"
    recorded = summarise(run)["recorded"]
    # Nothing ran in the second step; the device was watched in both.
    assert (recorded["steps"], recorded["steps_in_full"], recorded["operator_steps"]) == (2, 1, 2)
