import itertools
import json

import pytest

import strobe
from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import periodic_stall
from strobe.advise.training import Training
from tests.advise.drawings import no_core, of_framework, steps
from tests.faults.processes import TRAINING, write
from tests.helpers import make_run
from tests.warm import python, recorded

USUAL = {"gap": 100, "forward": 4000, "backward": 5000, "update": 900}  # 10 ms


def longer(**more_us: int) -> dict[str, int]:
    return {name: USUAL.get(name, 0) + more_us.get(name, 0) for name in {**USUAL, **more_us}}


def every(period: int, stall: dict[str, int], count: int = 60) -> list[dict[str, int]]:
    return [stall if number % period == 0 else USUAL for number in range(1, count + 1)]


def judged(tmp_path, parts, more="", extra=None):
    run = of_framework(make_run(tmp_path, steps(*parts) + more, extra))
    return periodic_stall.check(Training(run))


def begins_us(parts) -> list[int]:
    at, result = 0, []
    for one in parts:
        result.append(at)
        at += sum(one.values())
    return result


def test_a_stall_every_ten_steps_is_spread_over_all(tmp_path):
    parts = every(10, longer(gap=30_000))
    verdict = judged(tmp_path, parts)
    # Steps 4 to 60 are judged: 57 of 10 ms, and 6 times 30 ms more.
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 180 / (570 + 180)) < 1e-6
    # The first fix leaves a tenth of it.
    assert abs(verdict.expected_speedup - 750 / (750 - 0.9 * 180)) < 1e-5
    assert verdict.title == "Training stalls every 10 steps, which costs 24% of step time."
    assert verdict.why == "These steps take 30.0 ms longer than the others on average."
    assert "every 100 steps instead of every 10" in verdict.fixes[0]
    assert [row["step"] for row in verdict.evidence[0].rows] == [10, 20, 30, 40, 50, 60]


def lacking(parts, *, in_stalls: int, else_us: int):
    """The counter of time without a core: so many µs of each step, by whether it stalls."""
    longest = max(one["gap"] for one in parts)
    taken = [in_stalls if one["gap"] == longest else else_us for one in parts]
    ends = itertools.accumulate(sum(one.values()) for one in parts)
    return no_core((0, 0), *zip(ends, itertools.accumulate(taken), strict=True))


def test_a_stall_in_which_others_had_the_cores_is_theirs(tmp_path):
    parts = every(10, longer(gap=30_000))
    extra = lacking(parts, in_stalls=30_000, else_us=0)
    assert isinstance(judged(tmp_path, parts, extra=extra), Clear)


def test_what_others_take_of_the_other_steps_is_no_time_of_the_training(tmp_path):
    parts = every(10, longer(gap=30_000))
    extra = lacking(parts, in_stalls=0, else_us=5_000)
    verdict = judged(tmp_path, parts, extra=extra)
    # Of steps 4 to 60, 51 take 5 ms of their own and 6 take 40 ms, 30 ms of them in the stall.
    assert isinstance(verdict, Finding)
    assert verdict.share == pytest.approx(6 * 30 / (51 * 5 + 6 * 40))


def test_a_stall_is_seen_where_threads_of_the_framework_fight_for_cores_in_every_step(tmp_path):
    # 7 of 10 ms each, and 10 in the steps that take 15 ms more between their parts.
    parts = every(8, longer(gap=15_000))
    extra = lacking(parts, in_stalls=10_000, else_us=7_000)
    verdict = judged(tmp_path, parts, extra=extra)
    assert isinstance(verdict, Finding) and "every 8 steps" in verdict.title
    assert "12.0 ms longer" in verdict.why
    # Of steps 4 to 60, 50 take 3 ms of their own and 7 take 15, 12 of them in the stall.
    assert verdict.share == pytest.approx(7 * 12 / (50 * 3 + 7 * 15))


def test_passes_that_are_long_by_turns_where_threads_fight_for_cores_are_no_stall(tmp_path):
    parts = every(3, longer(forward=20_000))
    at, moments = 0, []
    for one in parts:
        at += sum(one.values())
        moments.append((at, at // 4))
    assert isinstance(judged(tmp_path / "crowded", parts, extra=no_core(*moments)), Clear)
    rarely = [(at, passed // 2) for at, passed in moments]
    assert isinstance(judged(tmp_path / "quiet", parts, extra=no_core(*rarely)), Finding)


def test_every_second_step_and_a_loop_that_counts_anew_in_each_epoch(tmp_path):
    second = judged(tmp_path / "a", every(2, longer(gap=10_000)))
    assert isinstance(second, Finding) and "every 2 steps" in second.title
    # Steps 20, 40, 60 of epochs of 64: distances 20, 20, 24, 20, 20, ...
    parts = [longer(gap=30_000) if (n % 64) % 20 == 19 else USUAL for n in range(256)]
    uneven = judged(tmp_path / "b", parts)
    assert isinstance(uneven, Finding) and "every 20 steps" in uneven.title


def test_hiccups_at_any_distance_are_none(tmp_path):
    at = {7, 9, 23, 26, 44, 59}
    parts = [longer(gap=30_000) if n in at else USUAL for n in range(1, 61)]
    assert isinstance(judged(tmp_path, parts), Clear)


def test_what_every_step_does_is_not_periodic(tmp_path):
    assert isinstance(judged(tmp_path, [longer(gap=30_000)] * 60), Clear)


def test_a_small_stall_is_clear(tmp_path):
    verdict = judged(tmp_path, every(10, longer(gap=4_000)))
    assert isinstance(verdict, Clear) and "One step in 10 takes 4.00 ms longer" in verdict.why


def test_waits_for_data_at_the_start_of_each_epoch_are_not_it(tmp_path):
    parts = every(10, longer(gap=30_000))
    waits = "".join(
        f"0/main data:next~batch {at * 1000}..{(at + 30_000) * 1000}\n"
        for at, one in zip(begins_us(parts), parts, strict=True)
        if one is not USUAL
    )
    assert isinstance(judged(tmp_path, parts, waits), Clear)


def evaluations(parts, length_us: int, name: str = "evaluation") -> str:
    return "".join(
        f"0/steps annotation:{name} {at * 1000}..{(at + length_us) * 1000}\n"
        for at, one in zip(begins_us(parts), parts, strict=True)
        if one is not USUAL
    )


def test_an_evaluation_is_wanted_unless_it_takes_a_quarter_of_the_time(tmp_path):
    little = every(10, longer(gap=20_000))
    assert isinstance(judged(tmp_path / "a", little, evaluations(little, 19_000)), Clear)
    much = every(10, longer(gap=60_000))
    verdict = judged(tmp_path / "b", much, evaluations(much, 59_000))
    assert isinstance(verdict, Finding) and verdict.title.startswith("An evaluation")
    assert any("torch.no_grad()" in fix for fix in verdict.fixes)


def test_an_evaluation_with_gradients_is_left_to_its_own_rule(tmp_path):
    much = every(10, longer(gap=60_000))
    spans = evaluations(much, 59_000, "evaluation~with~gradients")
    verdict = judged(tmp_path, much, spans)
    assert isinstance(verdict, Clear) and "gradients" in verdict.why


def test_the_line_and_what_it_is_come_from_the_looks(tmp_path):
    parts = every(10, longer(gap=30_000))
    stack = json.dumps([["/lib/site-packages/torch/serialization.py", 5, "save"],
                        ["/job/train.py", 12, "keep"], ["/job/train.py", 40, "fit"]])  # fmt: skip
    model = json.dumps([["/job/train.py", 30, "fit"]])
    rows = []
    for at, one in zip(begins_us(parts), parts, strict=True):
        rows.append((at + 50 if one is USUAL else at + 15_000, one is not USUAL))
    extra = {"samples": {
        "rank": [0] * 60, "ts_ns": [us * 1000 for us, _ in rows], "thread": ["training"] * 60,
        "place": ["x"] * 60, "function": ["f"] * 60,
        "stack": [stack if is_stall else model for _, is_stall in rows],
        "cpu_ns": [0] * 60, "waited_ns": [0] * 60,
    }}  # fmt: skip
    verdict = judged(tmp_path, parts, extra=extra)
    assert isinstance(verdict, Finding) and verdict.where == "train.py:12"
    assert verdict.title.startswith("A checkpoint at train.py:12 stalls training every 10 steps")
    assert "threading.Thread(target=torch.save" in verdict.fixes[0]


def test_a_model_that_acts_between_its_updates_does_not_stall_them(tmp_path):
    """Reinforcement learning: every tenth step begins with a rollout."""
    parts = every(10, longer(gap=30_000))
    drawn = ["/lib/site-packages/torch/distributions/categorical.py", 147, "sample"]
    stack = json.dumps([drawn, ["/job/ppo.py", 12, "act"], ["/job/ppo.py", 40, "fit"]])
    model = json.dumps([["/job/ppo.py", 30, "fit"]])
    extra = {"samples": {
        "rank": [0] * 60, "ts_ns": [(us + 10) * 1000 for us in begins_us(parts)],
        "thread": ["training"] * 60, "place": ["x"] * 60, "function": ["f"] * 60,
        "stack": [model if one is USUAL else stack for one in parts],
        "cpu_ns": [0] * 60, "waited_ns": [0] * 60,
    }}  # fmt: skip
    verdict = judged(tmp_path, parts, extra=extra)
    assert isinstance(verdict, Clear) and "the model acts in an environment" in verdict.why
    # A variational model draws too, but so that gradients flow through.
    extra["samples"]["stack"] = [text.replace('"sample"', '"rsample"')
                                 for text in extra["samples"]["stack"]]  # fmt: skip
    assert isinstance(judged(tmp_path / "other", parts, extra=extra), Finding)


@pytest.mark.slow
@pytest.mark.timing("a fault costs what it usually does")
def test_a_real_training_that_saves_every_fifth_step(tmp_path):
    pytest.importorskip("torch")
    script = write(
        tmp_path,
        TRAINING
        + """
import time
def save():
    time.sleep(0.06)
for number in range(60):
    train(1)
    if number % 5 == 4:
        save()
""",
    )
    python(*recorded(tmp_path / "run", script))
    with strobe.open_run(tmp_path / "run") as run:
        verdict = periodic_stall.check(Training(run.run))
    assert isinstance(verdict, Finding), verdict
    assert verdict.where == "train.py:18" and "every 5 steps" in verdict.title
    assert verdict.share > 0.5
