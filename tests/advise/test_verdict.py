"""The sentences about a training, in English and in Chinese."""

import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.verdict import gain, sentence
from strobe.messages import CHINESE, in_language, message


def found(title="Training spends 62% of its time waiting for data.", speedup=2.63, **more):
    return Finding(title, 0.62, speedup, ("Use 4 workers at train.py:31",), (), **more)


def test_the_most_expensive_fault_with_its_fix_place_and_gain():
    verdict = sentence({"a": found(where="train.py:31"), "b": found("Less.")}, {}, {})
    assert verdict == (
        "Training spends 62% of its time waiting for data. Use 4 workers at train.py:31: "
        "about 2.6× faster. 1 smaller finding below."
    )


def test_several_smaller_findings_are_counted():
    findings = {name: found() for name in "abc"}
    assert sentence(findings, {}, {}).endswith("faster. 2 smaller findings below.")


def test_a_place_is_named_only_in_the_fix():
    verdict = sentence({"a": found("train.py:31 waits.", where="train.py:31")}, {}, {})
    assert verdict == "train.py:31 waits. Use 4 workers at train.py:31: about 2.6× faster."


def test_only_the_first_fix_is_named_and_why_is_left_to_the_page():
    fixes = ("Set num_workers=4 on the DataLoader at train.py:31", "Give the job more cores")
    finding = Finding("It waits.", 0.5, 2.0, fixes, (), why="For this and that.")
    assert sentence({"a": finding}, {}, {}) == (
        "It waits. Set num_workers=4 on the DataLoader at train.py:31: about 2.0× faster."
    )


def test_a_fault_without_a_known_fix_says_what_fixing_it_gains():
    finding = Finding("It waits.", 0.5, 2.0, (), ())
    assert sentence({"a": finding}, {}, {}) == (
        "It waits. Fixing it would make steps about 2.0× faster."
    )


def test_a_warning_comes_after_what_costs_time():
    warning = found("Memory grows.", 1.0, is_warning=True)
    assert sentence({"a": warning, "b": found()}, {}, {}).startswith("Training spends")
    assert sentence({"a": warning}, {"c": Clear("x")}, {}) == (
        "No fault costs 5% of step time. Warning: Memory grows. Use 4 workers at train.py:31."
    )
    assert sentence({"a": warning}, {}, {}) == (
        "Warning: Memory grows. Use 4 workers at train.py:31."
    )


def test_no_fault_says_how_sure_that_is():
    clear, unknown = {"a": Clear("x"), "b": Clear("y")}, {"c": CannotTell("Not recorded.", "Do")}
    assert sentence({}, clear, unknown) == (
        "No fault costs 5% of step time: 2 checks passed, 1 skipped for missing data."
    )
    assert sentence({}, {"a": Clear("x")}, {}) == (
        "No fault costs 5% of step time: 1 check passed."
    )


def test_what_no_rule_can_judge_says_why():
    unknown = {"a": CannotTell("Not recorded.", "Do"), "b": CannotTell("Not recorded.", "Do")}
    assert sentence({}, {}, unknown) == "Strobe cannot tell why training is slow. Not recorded."
    unknown["c"] = CannotTell("Too short.", "Do")
    assert sentence({}, {}, unknown) == (
        "Strobe cannot tell why training is slow. The data that the rules need is missing."
    )


def test_what_the_recording_suffered_from_comes_first():
    crowded = Finding("Other programs use 1.6 of 2 cores.", 0.5, 2.0, ("Stop them",), ())
    assert sentence({"a": found()}, {}, {}, {"busy-machine": crowded}) == (
        "Other programs use 1.6 of 2 cores. Training spends 62% of its time waiting for data. "
        "Use 4 workers at train.py:31: about 2.6× faster."
    )


def test_in_chinese_all_parts_of_a_verdict_are_chinese():
    condition = Finding(message("crowded-cores.small", cores="1.0", share="20%"), 0.2, 1.2, (), ())
    finding = Finding(
        message("gc-pause.title", share="62%"), 0.62, 2.63, (message("gc-pause.freeze"),), ()
    )
    verdict = sentence({"a": finding, "b": found()}, {}, {}, {"c": condition})
    assert in_language(verdict, CHINESE) == (
        "脚本在后台占用 1.0 个核，损失迭代时间的 20%。Python 垃圾回收占迭代时间的 62%。"
        "在训练循环之前执行一次 `import gc; gc.collect(); gc.freeze()`："
        "预计速度可达原来的 2.6 倍。下方还有 1 个较小的问题。"
    )


@pytest.mark.parametrize(
    "speedup, shown",
    [(1.07, "about 7.0% faster"), (1.15, "about 15% faster"), (1.26, "about 1.3× faster"),
     (12.4, "about 12× faster")],
)  # fmt: skip
def test_gain(speedup, shown):
    assert gain(found(speedup=speedup)) == shown


@pytest.mark.parametrize(("least", "most", "shown"), [
    (1.1, 3.04, "1.1× to 3.0× faster"), (1.02, 1.15, "2.0% to 15% faster"),
])  # fmt: skip
def test_a_gain_that_depends_on_what_was_not_measured_is_a_range(least, most, shown):
    assert gain(found(speedup_range=(least, most))) == shown
