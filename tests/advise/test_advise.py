from types import SimpleNamespace

from strobe.advise import RULES, advise
from strobe.advise.finding import CannotTell, Clear, Finding
from tests.advise.drawings import same, steps
from tests.helpers import make_run


def rule(name, verdict):
    def check(training):
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return SimpleNamespace(NAME=name, check=check)


def found(share):
    return Finding("a title", share, 1.1, ("fix it",), ())


def test_findings_come_dearest_first_and_small_ones_are_none(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)))
    rules = (
        rule("small", found(0.049)),
        rule("cheap", found(0.1)),
        rule("dear", found(0.3)),
        rule("clear", Clear("nothing of it")),
        rule("blind", CannotTell("not recorded", "record it")),
    )
    advice = advise(run, rules)
    assert list(advice.findings) == ["dear", "cheap"]
    assert advice.cost_ns(advice.findings["dear"]) == 0.3 * 1_700_000
    assert list(advice.clear) == ["small", "clear"] and list(advice.cannot_tell) == ["blind"]


def test_a_rule_that_breaks_cannot_tell_and_spoils_no_other(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)))
    advice = advise(run, (rule("broken", KeyError("x")), rule("dear", found(0.3))))
    assert "KeyError: 'x'" in advice.cannot_tell["broken"].reason
    assert list(advice.findings) == ["dear"]


def test_without_steps_no_rule_can_tell(tmp_path):
    advice = advise(make_run(tmp_path, "0/main op:aten::mm 0..10"))
    assert list(advice.cannot_tell) == [rule.NAME for rule in RULES]


def test_a_training_as_short_as_warm_up_is_not_judged(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 3)))
    rules = (rule("clear", Clear("nothing of it")), rule("dear", found(0.3)))
    # A profiler in the script may have been started after warm-up.
    run.manifest.recorded_by = "strobe.Profiler"
    assert list(advise(run, rules).findings) == ["dear"]
    run.manifest.recorded_by = "strobe run"
    advice = advise(run, rules)
    assert list(advice.cannot_tell) == ["clear", "dear"] and not advice.findings
    assert advice.verdict == (
        "Cannot tell why training is slow: too few steps were recorded, all of them during warm-up."
    )


def test_four_steps_are_judged(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 4)))
    run.manifest.recorded_by = "strobe run"
    assert list(advise(run, (rule("dear", found(0.3)),)).findings) == ["dear"]
