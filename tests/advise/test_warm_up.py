import json

import pytest

from strobe.advise import warm_up
from strobe.advise.finding import Clear, Finding
from strobe.advise.fixes import fix
from strobe.advise.training import Training
from tests.advise.drawings import no_core, of_framework, steps
from tests.helpers import make_run

STEP = {"forward": 100_000}  # 0.1 s


def judged(tmp_path, first_us: list[int], count: int = 100, extra=None):
    parts = [{"forward": us} for us in first_us] + [STEP] * (count - len(first_us))
    return warm_up.check(Training(of_framework(make_run(tmp_path, steps(*parts), extra))))


def test_what_the_first_steps_take_more_is_the_cost(tmp_path):
    verdict = judged(tmp_path, [8_100_000, 2_100_000])
    # 100 steps of 0.1 s, of which two take 10 s more: 20 s in all.
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 0.5) < 1e-9 and abs(verdict.expected_speedup - 2) < 1e-9
    assert verdict.title.startswith("the first 2 steps take 10.0 s more than later ones")
    assert [row["step"] for row in verdict.evidence[0].rows] == [1, 2]


def test_a_single_first_step_is_told_as_one(tmp_path):
    verdict = judged(tmp_path, [10_100_000])
    assert verdict.title.startswith("the first step takes 10.0 s more than later ones, 50 %")


def test_the_usual_start_of_a_process_is_clear(tmp_path):
    assert isinstance(judged(tmp_path / "a", [1_500_000]), Clear)


def test_in_a_long_training_it_does_not_matter(tmp_path):
    verdict = judged(tmp_path, [3_100_000], count=2000)
    assert isinstance(verdict, Clear) and "1.5 % of what was recorded" in verdict.why


def test_without_a_core_for_longer_than_a_step_lasts_no_step_takes_less_than_nothing(tmp_path):
    """It is told late: 9 s without a core, at a moment inside a step of 0.2 s."""
    parts = [{"forward": 4_100_000}] + [STEP] * 98 + [{"forward": 200_000}]
    told = no_core((0, 0), (13_900_000, 0), (13_900_001, 9_000_000), (14_100_000, 9_000_000))
    verdict = warm_up.check(Training(make_run(tmp_path, steps(*parts), told)))
    assert isinstance(verdict, Finding)
    assert 0 < verdict.share < 0.5 and 1 < verdict.expected_speedup < 2


def test_too_few_steps_to_know_a_usual_one(tmp_path):
    assert isinstance(judged(tmp_path / "a", [9_000_000], count=6), Clear)


def test_steps_that_never_settle_are_not_a_warm_up(tmp_path):
    assert isinstance(judged(tmp_path, [9_000_000] * 60), Clear)


def test_compiling_is_named_by_the_looks_and_told_as_a_warning(tmp_path):
    stack = json.dumps([["/lib/site-packages/torch/_inductor/codecache.py", 5, "compile"],
                        ["/job/train.py", 30, "fit"]])  # fmt: skip
    extra = {"samples": {
        "rank": [0] * 4, "ts_ns": [k * 1_000_000_000 for k in range(1, 5)],
        "thread": ["training"] * 4, "place": ["train.py:30"] * 4, "function": ["fit"] * 4,
        "stack": [stack] * 4, "cpu_ns": [0] * 4, "waited_ns": [0] * 4,
    }}  # fmt: skip
    verdict = judged(tmp_path, [8_100_000], extra=extra)
    assert isinstance(verdict, Finding) and verdict.where == "train.py:30"
    assert "torch.compile compiles" in verdict.title
    assert "TORCHINDUCTOR_CACHE_DIR" in verdict.fixes[0]
    assert verdict.is_warning and verdict.share == 0


@pytest.mark.parametrize("framework", ["torch", "jax", "mindspore"])
def test_a_compiler_that_was_recorded_is_named_where_no_look_saw_it(tmp_path, framework):
    """It may keep Python's lock all the while: then nobody can look."""
    parts = [{"forward": 8_100_000}] + [STEP] * 99
    compiling = "0/main annotation:compilation~1~of~Step~at~/job/train.py:30 1000..7000000000"
    run = make_run(tmp_path, steps(*parts) + compiling)
    run.manifest.ranks[0].frameworks = {framework: "1.0"}
    verdict = warm_up.check(Training(run))
    assert isinstance(verdict, Finding)
    assert f": {warm_up.COMPILERS[framework]}, " in verdict.title
    assert verdict.fixes == (fix("cache-compiled", framework), fix("compile-less", framework))
