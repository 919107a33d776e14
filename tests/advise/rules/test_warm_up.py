import json

import pytest

from strobe.advise.finding import Clear, Finding
from strobe.advise.fixes import fix
from strobe.advise.rules import warm_up
from strobe.advise.training import Training
from strobe.frameworks import JAX, MINDSPORE, TORCH
from strobe.units import percent
from tests.advise.drawings import no_core, of_framework, steps
from tests.helpers import make_run

STEP = {"forward": 100_000}  # 0.1 s


def judged(tmp_path, first_us: list[int], count: int = 100, extra=None):
    parts = [{"forward": us} for us in first_us] + [STEP] * (count - len(first_us))
    return warm_up.check(Training(of_framework(make_run(tmp_path, steps(*parts), extra))))


def samples(stack: list[list[object]], count: int = 4) -> dict[str, dict[str, list[object]]]:
    """Samples at this stack, a second apart, innermost frame first."""
    file, line, function = stack[-1]
    return {"samples": {
        "rank": [0] * count, "ts_ns": [k * 1_000_000_000 for k in range(1, count + 1)],
        "thread": ["training"] * count, "place": [f"{file}:{line}"] * count,
        "function": [function] * count, "stack": [json.dumps(stack)] * count,
        "cpu_ns": [0] * count, "waited_ns": [0] * count,
    }}  # fmt: skip


def test_what_the_first_steps_take_more_is_saved_once_and_makes_no_step_faster(tmp_path):
    verdict = judged(tmp_path, [8_100_000, 2_100_000])
    # 100 steps of 0.1 s, of which two take 10 s more: 20 s in all.
    assert isinstance(verdict, Finding)
    assert verdict.saves_at_start_ns == 10_000_000_000
    assert (verdict.share, verdict.expected_speedup, verdict.is_warning) == (0.0, 1.0, True)
    cost = f"10.0 s longer than later ones, {percent(0.5)} of the recorded time"
    assert verdict.title == f"The first 2 steps take {cost}."
    assert verdict.why == "The recording does not show the cause. A typical step takes 100 ms."
    assert [row["step"] for row in verdict.evidence[0].rows] == [1, 2]


def test_a_single_first_step_is_reported_as_one(tmp_path):
    verdict = judged(tmp_path, [10_100_000])
    assert verdict.title.startswith("The first step takes 10.0 s longer than later ones, ")


def test_an_evaluation_after_the_first_step_is_not_warm_up(tmp_path):
    parts = [STEP, {"gap": 15_000_000, "forward": 100_000}] + [STEP] * 58
    spans = "".join(
        f"0/steps annotation:evaluation {at}000000..{at + 900}000000\n"
        for at in range(200, 15_000, 1000)
    )
    verdict = warm_up.check(Training(make_run(tmp_path, steps(*parts) + spans)))
    assert verdict == Clear(
        "Apart from an evaluation, the first steps are not clearly slower than later ones."
    )


def test_other_work_between_the_first_steps_is_not_warm_up(tmp_path):
    """An evaluation that nothing marks, at a line of the user's own."""
    parts = [STEP, {"gap": 15_000_000, "forward": 100_000}] + [STEP] * 58
    extra = samples([["/job/model.py", 293, "generate"], ["/job/train.py", 30, "fit"]])
    verdict = warm_up.check(Training(make_run(tmp_path, steps(*parts), extra)))
    assert isinstance(verdict, Clear)
    assert verdict.why.endswith("because the script does other work at model.py:293 between steps.")


def test_a_first_batch_that_is_waited_for_is_warm_up(tmp_path):
    parts = [{"gap": 6_000_000, "forward": 100_000}] + [STEP] * 99
    wait = "0/main data:next~batch 0..5999000000"
    run = make_run(tmp_path, steps(*parts) + wait, samples([["/job/records.py", 12, "scan"]]))
    verdict = warm_up.check(Training(run))
    assert isinstance(verdict, Finding) and verdict.where == "records.py:12"
    assert "at records.py:12 once before training" in verdict.fixes[0] and not verdict.is_certain
    assert "mostly at records.py:12." in verdict.why


def test_the_usual_start_of_a_process_is_clear(tmp_path):
    assert isinstance(judged(tmp_path / "a", [1_500_000]), Clear)


def test_in_a_long_training_it_does_not_matter(tmp_path):
    verdict = judged(tmp_path, [3_100_000], count=2000)
    assert isinstance(verdict, Clear) and f"{percent(0.0148)} of the recorded" in verdict.why


def test_without_a_core_for_longer_than_a_step_lasts_no_step_takes_less_than_nothing(tmp_path):
    """It is recorded late: 9 s without a core, at a moment inside a step of 0.2 s."""
    parts = [{"forward": 4_100_000}] + [STEP] * 98 + [{"forward": 200_000}]
    waits = no_core((0, 0), (13_900_000, 0), (13_900_001, 9_000_000), (14_100_000, 9_000_000))
    verdict = warm_up.check(Training(make_run(tmp_path, steps(*parts), waits)))
    assert isinstance(verdict, Finding)
    assert 3.9e9 < verdict.saves_at_start_ns < 4.1e9


def test_too_few_steps_to_know_a_usual_one(tmp_path):
    assert isinstance(judged(tmp_path / "a", [9_000_000], count=6), Clear)


def test_steps_that_never_settle_are_not_a_warm_up(tmp_path):
    assert isinstance(judged(tmp_path, [9_000_000] * 60), Clear)


def test_compiling_is_named_by_the_samples_and_reported_as_a_warning(tmp_path):
    extra = samples([["/lib/site-packages/torch/_inductor/codecache.py", 5, "compile"],
                   ["/job/train.py", 30, "fit"]])  # fmt: skip
    verdict = judged(tmp_path, [8_100_000], extra=extra)
    assert isinstance(verdict, Finding) and verdict.where == "train.py:30"
    assert verdict.why.startswith("Most of that time is compilation by torch.compile.")
    assert "TORCHINDUCTOR_CACHE_DIR" in verdict.fixes[0]
    assert verdict.is_warning and verdict.share == 0 and verdict.is_certain
    assert not any("as short as" in text for text in verdict.fixes)


def test_a_compiler_that_takes_longer_than_all_steps_does_not_pay_off(tmp_path):
    extra = samples([["/lib/site-packages/torch/_dynamo/guards.py", 5, "f"],
                   ["/job/train.py", 30, "fit"]])  # fmt: skip
    verdict = judged(tmp_path, [12_100_000], count=30, extra=extra)
    assert verdict.expected_speedup == 1.0 and verdict.saves_at_start_ns == 12_000_000_000
    assert verdict.fixes[-1] == fix("skip-compiler", TORCH)


@pytest.mark.parametrize("framework", [TORCH, JAX, MINDSPORE])
def test_a_compiler_that_was_recorded_is_named_where_no_sample_shows_it(tmp_path, framework):
    """It may hold Python's lock all the time, so that no samples are taken."""
    parts = [{"forward": 8_100_000}] + [STEP] * 99
    compiling = "0/main annotation:compilation~1~of~Step~at~/job/train.py:30 1000..7000000000"
    run = make_run(tmp_path, steps(*parts) + compiling)
    run.manifest.ranks[0].frameworks = {framework.name: "1.0"}
    verdict = warm_up.check(Training(run))
    assert isinstance(verdict, Finding)
    assert verdict.why.id == framework.compiler.message
    assert verdict.fixes == (fix("cache-compiled", framework), fix("compile-less", framework))
