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
    return Finding("It waits.", share, 1.1, ("Change it",), ())


def test_the_most_expensive_finding_comes_first_and_small_ones_are_clear(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)))
    rules = (
        rule("small", found(0.049)),
        rule("cheap", found(0.1)),
        rule("expensive", found(0.3)),
        rule("clear", Clear("It does not wait.")),
        rule("unknown", CannotTell("It was not recorded.", "Record it")),
    )
    advice = advise(run, rules)
    assert list(advice.findings) == ["expensive", "cheap"]
    assert advice.cost_ns(advice.findings["expensive"]) == 0.3 * 1_700_000
    assert list(advice.clear) == ["small", "clear"] and list(advice.cannot_tell) == ["unknown"]
    assert advice.clear["small"].why == "It waits. This is too little to matter."


def test_a_symptom_is_clear_and_says_what_explains_it(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)))
    rules = (rule("data-starvation", found(0.4)), rule("crowded-cores", found(0.3)))
    advice = advise(run, rules)
    assert list(advice.findings) == ["data-starvation"]
    assert advice.clear["crowded-cores"].why == "It waits. This is explained by data-starvation."


def test_a_rule_that_fails_cannot_tell_and_the_others_still_can(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 20)))
    advice = advise(run, (rule("broken", KeyError("x")), rule("expensive", found(0.3))))
    assert advice.cannot_tell["broken"].reason == (
        "A bug in Strobe stopped this rule: KeyError: 'x'."
    )
    assert list(advice.findings) == ["expensive"]


def test_without_steps_no_rule_can_tell(tmp_path):
    advice = advise(make_run(tmp_path, "0/main op:aten::mm 0..10"))
    assert list(advice.cannot_tell) == [rule.NAME for rule in RULES]
    assert advice.cannot_tell["gc-pause"].reason == "No training step was recorded."


def test_a_training_as_short_as_warm_up_is_not_judged(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 3)))
    rules = (rule("clear", Clear("It does not wait.")), rule("expensive", found(0.3)))
    # A profiler in the script may have been started after warm-up.
    run.manifest.recorded_by = "strobe.Profiler"
    assert list(advise(run, rules).findings) == ["expensive"]
    run.manifest.recorded_by = "strobe run"
    advice = advise(run, rules)
    assert list(advice.cannot_tell) == ["clear", "expensive"] and not advice.findings
    assert advice.verdict == (
        "Strobe cannot tell why training is slow. "
        "The run is too short, because all of its steps belong to warm-up."
    )
    assert advice.cannot_tell["clear"].hint == "Record at least 8 steps"


def test_four_steps_are_judged(tmp_path):
    run = make_run(tmp_path, steps(*same({"forward": 100}, 4)))
    run.manifest.recorded_by = "strobe run"
    assert list(advise(run, (rule("expensive", found(0.3)),)).findings) == ["expensive"]
