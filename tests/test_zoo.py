"""The zoo: its scripts are what they claim to be, and a few of them get the right advice."""

import difflib
import os

import pytest
from benchmarks.zoo import catalogue, report
from benchmarks.zoo.judging import FalseAlarm, Row, false_alarms, judge_fault
from benchmarks.zoo.kept import Kept

from strobe.advise import RULES

pytest.importorskip("torch")
PAIRS = {pair.name: pair for pair in catalogue.pairs()}
HEALTHY = {script.name: script for script in catalogue.healthy()}
# A rule that a machine without a GPU cannot judge.
NEED_A_GPU = {
    "allocator-churn", "data-parallel", "device-idle", "host-sync", "low-precision-unused",
    "slow-transfer",
}  # fmt: skip
# A condition of the machine, and a fault that costs microseconds for each tensor.
NOT_OF_A_SCRIPT = {"busy-machine", "find-unused-parameters"}
# Lines that a repair may touch; a twin that differs in more is another script.
LONGEST_REPAIR = 30
# Timings have no place among the tests that every change must pass.
by_the_clock = pytest.mark.skipif(
    "STROBE_ZOO" not in os.environ, reason="timings: STROBE_ZOO=1, or python -m benchmarks.zoo"
)


def test_every_rule_has_two_pairs():
    of_rule = [pair.rule for pair in PAIRS.values()]
    assert set(of_rule) <= {rule.NAME for rule in RULES}
    for rule in RULES:
        if rule.NAME not in NEED_A_GPU | NOT_OF_A_SCRIPT:
            assert of_rule.count(rule.NAME) >= 2, rule.NAME


def test_there_are_ten_healthy_scripts_and_one_of_several_ranks():
    assert len(HEALTHY) >= 10
    assert any(script.ranks > 1 for script in HEALTHY.values())


@pytest.mark.parametrize("name", PAIRS)
def test_a_twin_differs_only_in_the_repair(name):
    pair = PAIRS[name]
    before, after = (
        script.path.read_text().splitlines() for script in (pair.faulty, pair.repaired)
    )
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    assert 0 < len(changed) <= LONGEST_REPAIR


def test_no_script_knows_of_strobe():
    for path in catalogue.SCRIPTS.rglob("*.py"):
        assert "strobe" not in path.read_text().lower(), path


def test_what_is_said_of_scripts_is_said_of_scripts_that_exist():
    stems = {path.stem for path in catalogue.SCRIPTS.rglob("*.py")}
    assert {*catalogue.STAGES, *catalogue.RANKS, *catalogue.ALSO_TRUE} <= stems


def test_totals_by_hand():
    rows = [
        Row("a", "x", top="x", share=0.5, predicted=2.0, measured=1.7),  # + 18%
        Row("b", "x", top="y", share=0.1, predicted=1.1, measured=1.6),  # - 31%
        Row("c", "x", top="x", stage="reading", top_stage="collate"),
        Row("d", "x", problem="it broke"),
    ]
    alarms = [FalseAlarm("s", "x", 0.11, ""), FalseAlarm("s", "x", 0.07, "")]
    assert report.totals(rows, alarms, 9) == {
        "pairs": 4, "failed": 1, "hits": 2, "stages_right": "0 of 1",
        "scripts_without_fault": 9, "false_alarms": 2, "false_alarms_over_10_percent": 1,
        "predicted_within_25_percent": 1, "compared": 2,
    }  # fmt: skip


def test_the_table_for_the_docs_marks_what_was_missed(capsys):
    report.print_markdown([
        Row("a", "x", top="x", share=0.5, predicted=2.0, measured=1.6),
        Row("b", "x", top="y"),
    ])  # fmt: skip
    assert capsys.readouterr().out.splitlines()[3:] == [
        "| a | x | 50% | 2.00x | 1.60x | +25% |",
        "| b | **y** |  |  |  |  |",
    ]


@by_the_clock
@pytest.mark.parametrize(
    "name",
    ["data_starvation/object_store", "double_precision/from_numpy", "gc_pause/collect_every_step"],
)
def test_a_fault_is_the_first_thing_found(name, tmp_path):
    row = judge_fault(PAIRS[name], Kept(tmp_path))
    assert row.is_hit, row
    assert row.stage is None or row.is_stage_right


@by_the_clock
@pytest.mark.parametrize(
    "name", ["healthy/convolutions", "healthy/transformer", "healthy/loader_with_workers"]
)
def test_a_healthy_script_has_no_costly_fault(name, tmp_path):
    alarms = false_alarms(HEALTHY[name], Kept(tmp_path))
    assert not [alarm for alarm in alarms if alarm.share > report.GRAVE_SHARE], alarms
