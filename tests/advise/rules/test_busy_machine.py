"""Other programs use the cores: a condition of the recording, reported before any finding."""

import pytest

from strobe.advise import advise
from strobe.advise.evidence.core_shares import CoreShares
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import busy_machine
from strobe.advise.training import Training
from tests.advise.drawings import same, steps
from tests.helpers import make_run

# Twenty steps of 100 ms: two seconds.
STEPS = steps(*same({"forward": 100_000}, 20))
LAST_NS = 2_000_000_000


def recorded(tmp_path, *, busy=2.0, programs=None, drawing=STEPS, **cores):
    """Each role, or role_lacked, had so many cores all the time; of two."""
    rows = [("cores_usable_milli", 0, 2000), ("cores_busy_milli", LAST_NS, busy * 1000)]
    for name, value in cores.items():
        role = f"{name.removesuffix('_lacked')}_threads"
        kind = "no_core" if name.endswith("_lacked") else "cpu"
        rows += [(f"{role}_{kind}_ns_total", at, value * at) for at in (0, LAST_NS)]
    own = sum(value for name, value in cores.items() if not name.endswith("_lacked"))
    rows += [("process_cpu_ns_total", at, own * at) for at in (0, LAST_NS)]
    for name, used_ns in (programs or {}).items():
        rows += [(f"other program {name} cpu_ns_total", at, used_ns * at) for at in (0, LAST_NS)]
    names, ts_ns, values = zip(*rows, strict=True)
    counters = {"rank": [0] * len(rows), "ts_ns": [*ts_ns], "name": [*names],
                "value": [int(value) for value in values]}  # fmt: skip
    return make_run(tmp_path, drawing, {"counters": counters})


def test_what_training_lacked_and_other_programs_had_is_what_they_cost(tmp_path):
    # With the core that it lacked, training would have 1.5 instead of 0.5: a third of the time.
    run = recorded(
        tmp_path, training=0.5, training_lacked=1.0, programs={"chrome": 1.4, "tar": 0.1}
    )  # fmt: skip
    verdict = busy_machine.check(Training(run))
    assert isinstance(verdict, Finding) and not verdict.is_certain
    assert verdict.title == (
        "Other programs (chrome) use 1.5 of 2 cores, which makes training about 3.0× slower."
    )
    assert verdict.why == (
        "Training used 0.5 cores on average, and its threads were ready to run on 1.0 more."
    )
    assert verdict.share == pytest.approx(2 / 3)
    assert [row["who"] for row in verdict.evidence[0].rows] == ["other programs", "training"]


def test_it_is_said_first_and_is_not_a_finding(tmp_path):
    advice = advise(recorded(tmp_path, training=0.5, training_lacked=1.0))
    assert list(advice.conditions) == ["busy-machine"] and "busy-machine" not in advice.findings
    assert advice.verdict.startswith("Other programs use 1.5 of 2 cores, which makes training")
    (condition,) = advice.to_json()["conditions"]
    assert condition["rule"] == "busy-machine" and condition["share"] == pytest.approx(2 / 3)


def test_cores_that_are_busy_but_not_missed_are_clear(tmp_path):
    run = recorded(tmp_path, training=1.0, training_lacked=0.02)
    assert busy_machine.check(Training(run)) == Clear(
        "Other programs use 1.0 cores, which costs only 2.0% of step time."
    )


def test_what_this_job_uses_is_not_another_programs(tmp_path):
    run = recorded(tmp_path, training=1.0, training_lacked=0.9, python=0.6, strobe=0.4)
    assert isinstance(busy_machine.check(Training(run)), Clear)


def test_a_short_run_is_judged_by_its_training_thread(tmp_path):
    """All threads were looked at only once."""
    rows = [("cores_usable_milli", 0, 2000), ("cores_busy_milli", LAST_NS, 2000)]
    for name, cores in (("process_cpu", 0.5), ("training_no_core", 0.5)):
        rows += [(f"{name}_ns_total", at, cores * at) for at in (0, LAST_NS)]
    rows += [("training_threads_cpu_ns_total", 0, 0)]
    names, ts_ns, values = zip(*rows, strict=True)
    counters = {"rank": [0] * len(rows), "ts_ns": [*ts_ns], "name": [*names],
                "value": [int(value) for value in values]}  # fmt: skip
    verdict = busy_machine.check(Training(make_run(tmp_path, STEPS, {"counters": counters})))
    assert isinstance(verdict, Finding) and verdict.share == pytest.approx(0.5)


def test_without_counters_it_cannot_tell(tmp_path):
    assert isinstance(busy_machine.check(Training(make_run(tmp_path, STEPS))), CannotTell)


def test_a_small_finding_on_a_busy_machine_may_be_its_effect(tmp_path, monkeypatch):
    """A tenth of step time is enough on a quiet machine and not where others take two thirds."""
    small = Finding("Something costs 10%.", 0.1, 1.1, ("change it",), ())

    class Rule:
        NAME = "small"

        @staticmethod
        def check(training):
            return small

    quiet = advise(recorded(tmp_path / "quiet", training=1.0, busy=1.0), (Rule,))
    assert list(quiet.findings) == ["small"]
    crowded = advise(recorded(tmp_path / "busy", training=0.5, training_lacked=1.0), (Rule,))
    assert not crowded.findings
    assert crowded.cannot_tell["small"].reason == (
        "Something costs 10%. Other programs on this machine may be the cause."
    )


def test_the_sentence_names_what_is_known_of_the_cores_and_the_programs():
    shares = CoreShares(0, 1.0, 0.5, {}, 0.6, 1.0, 0.0)
    assert busy_machine._cores(shares, None) == "0.6 cores"
    assert busy_machine._cores(shares, 1.0) == "0.6 of 1 core"
    assert busy_machine._programs(["tar", "cc"]) == "Other programs (tar, cc)"
