import json

import pytest

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.rules import host_gap
from strobe.advise.training import Training
from tests.advise.drawings import of_framework, same, steps
from tests.faults.processes import TRAINING, write
from tests.helpers import make_run
from tests.warm import python, recorded

STEP_US = 10_000


def drawing(gap_us: int, operators: str = "", count: int = 20) -> str:
    """Steps of 10 ms, of which the gap is a part; steps 6 to 8 recorded in full."""
    step = {"gap": gap_us, "forward": STEP_US - gap_us}
    return steps(*same(step, count), window=(6, 8)) + operators


def forwards(gap_us: int, first_us: int = 0) -> str:
    """One operator that fills the forward pass of the steps recorded in full."""
    lines = []
    for step in (6, 7, 8):
        begin = (step - 1) * STEP_US
        at = (begin + gap_us + first_us) * 1000
        lines.append(f"0/main op:aten::mm {at}..{(begin + STEP_US) * 1000} step={step}")
    return "\n".join(lines) + "\n"


def looks(
    count: int = 20, at_us: int = 1000, cpu_a_step_ns: int = 7_000_000, below: tuple = ()
) -> dict:
    """One look in each gap, at a line of the user's."""
    stack = json.dumps([*below, ["/job/train.py", 9, "log"], ["/job/train.py", 31, "fit"]])
    return {"samples": {
        "rank": [0] * count, "ts_ns": [(k * STEP_US + at_us) * 1000 for k in range(count)],
        "thread": ["training"] * count, "place": ["train.py:9"] * count,
        "function": ["log"] * count, "stack": [stack] * count,
        "cpu_ns": [k * cpu_a_step_ns for k in range(count)], "waited_ns": [0] * count,
    }}  # fmt: skip


def judged(tmp_path, text: str, extra=None):
    return host_gap.check(Training(make_run(tmp_path, text, extra)))


def test_time_without_operators_between_steps_is_the_cost(tmp_path):
    verdict = judged(tmp_path, drawing(3000, forwards(3000)), looks())
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 0.3) < 1e-9 and abs(verdict.expected_speedup - 1 / 0.7) < 1e-9
    assert verdict.where == "train.py:9"
    assert verdict.title == "A wait at train.py:9 takes 30% of step time while no operator runs."
    assert verdict.why == "This takes 3.00 ms per step, most of it between the passes."
    assert "train.py:9" in verdict.fixes[0]


def test_flax_that_goes_through_the_model_at_each_call_is_told_with_its_own_fix(tmp_path):
    below = (["/lib/site-packages/flax/nnx/graphlib.py", 949, "_graph_flatten"],)
    busy = looks(below=below, cpu_a_step_ns=10_000_000)
    run = of_framework(make_run(tmp_path, drawing(3000, forwards(3000)), busy), "jax")
    verdict = host_gap.check(Training(run))
    assert isinstance(verdict, Finding) and verdict.where == "train.py:9"
    assert verdict.title == (
        "flax.nnx takes 30% of step time to traverse the model's objects in Python at train.py:9."
    )
    assert "nnx.cached_partial" in verdict.fixes[0]


def test_a_checkpoint_in_every_step_is_named_and_saved_less_often(tmp_path):
    below = (["/lib/site-packages/torch/serialization.py", 1312, "_save"],)
    run = make_run(tmp_path, drawing(3000, forwards(3000)), looks(below=below))
    verdict = host_gap.check(Training(of_framework(run, "torch")))
    assert isinstance(verdict, Finding)
    assert verdict.title.startswith("A checkpoint at train.py:9 takes 30% of step time")
    assert verdict.why.startswith("This takes 3.00 ms per step")
    assert verdict.fixes[0] == (
        "Run the code at train.py:9 only every 100 steps (`if step % 100 == 0`)"
    )
    assert "torch.save" in verdict.fixes[1]


def test_freeing_gradients_is_not_python_that_could_use_tensors(tmp_path):
    below = (["/lib/site-packages/torch/optim/optimizer.py", 1062, "zero_grad"],)
    verdict = judged(tmp_path, drawing(3000, forwards(3000)), looks(below=below))
    assert verdict == Clear(
        "No operator runs for 30% of step time because `zero_grad` frees the memory of gradients."
    )


def test_activation_checkpointing_in_the_forward_pass_is_not_a_checkpoint(tmp_path):
    below = (["/lib/site-packages/torch/utils/checkpoint.py", 500, "checkpoint"],)
    drawn = drawing(0, forwards(0, first_us=2000))
    verdict = judged(tmp_path, drawn, looks(below=below))
    assert isinstance(verdict, Finding) and "checkpoint" not in verdict.title


def test_long_operators_in_the_gap_are_not_pythons_but_tiny_ones_are(tmp_path):
    for name, length_us, share in (("long", 2900, 0.01), ("tiny", 19, 0.3)):
        more = "".join(
            f"0/main op:aten::add {((s - 1) * STEP_US + 50) * 1000}.."
            f"{((s - 1) * STEP_US + 50 + length_us) * 1000} step={s}\n"
            for s in (6, 7, 8)
        )
        verdict = judged(tmp_path / name, drawing(3000, forwards(3000) + more), looks())
        found = verdict.share if isinstance(verdict, Finding) else 0.01
        assert abs(found - share) < 0.005, name


def test_waits_for_data_garbage_and_evaluation_have_names_of_their_own(tmp_path):
    named = {
        "data": "0/main data:next~batch {0}..{1} step={2}",
        "gc": "0/main gc:generation~2 {0}..{1} step={2}",
        "evaluation": "0/steps annotation:evaluation {0}..{1} step={2}",
    }
    for name, line in named.items():
        more = "".join(
            line.format((s - 1) * STEP_US * 1000, ((s - 1) * STEP_US + 2900) * 1000, s) + "\n"
            for s in range(1, 21)
        )
        verdict = judged(tmp_path / name, drawing(3000, forwards(3000) + more), looks())
        assert isinstance(verdict, Clear), name


def test_a_long_gap_inside_the_forward_pass_counts_and_a_short_one_does_not(tmp_path):
    long = judged(tmp_path / "a", drawing(0, forwards(0, first_us=2000)), looks())
    assert isinstance(long, Finding) and abs(long.share - 0.2) < 1e-9
    short = judged(tmp_path / "b", drawing(0, forwards(0, first_us=900)), looks())
    assert isinstance(short, Clear)


def test_what_is_long_only_now_and_then_is_not_typical(tmp_path):
    step, stall = {"forward": 10_000}, {"gap": 50_000, "forward": 10_000}
    text = steps(*([step] * 9 + [stall]) * 4, window=(6, 8))
    text += "".join(
        f"0/main op:mm {(s - 1) * 10_000_000}..{s * 10_000_000} step={s}\n" for s in (6, 7, 8)
    )
    assert isinstance(judged(tmp_path, text), Clear)


def test_the_ordinary_glue_of_a_tiny_step_is_clear(tmp_path):
    text = steps(*same({"gap": 200, "forward": 300}, 20), window=(6, 8))
    text += "0/main op:mm 2700000..3000000 step=6\n"
    assert isinstance(judged(tmp_path, text), Clear)


def test_without_operators_a_large_gap_cannot_be_judged_and_a_small_one_is_clear(tmp_path):
    large = steps(*same({"gap": 3000, "forward": 7000}, 20))
    assert isinstance(judged(tmp_path / "a", large), CannotTell)
    small = steps(*same({"gap": 300, "forward": 9700}, 20))
    assert isinstance(judged(tmp_path / "b", small), Clear)


@pytest.mark.slow
@pytest.mark.parametrize(("work", "doing"), [
    ("time.sleep(0.02)", "A wait"),
    ("sum(i * i for i in range(300_000))", "Python code"),
])  # fmt: skip
def test_a_real_training_that_logs_in_every_step(tmp_path, work: str, doing: str):
    pytest.importorskip("torch")
    script = write(
        tmp_path,
        TRAINING
        + f"""
import time
def log():
    {work}
for _ in range(100):  # of a shorter training there are few looks, and a stray one may decide
    train(1)
    log()
""",
    )
    python(*recorded(tmp_path / "run", script))
    import strobe

    with strobe.open_run(tmp_path / "run") as run:
        verdict = host_gap.check(Training(run.run))
    assert isinstance(verdict, Finding), verdict
    assert verdict.share > 0.6
    assert verdict.where == "train.py:18" and verdict.title.startswith(f"{doing} at train.py:18")


def imported(tmp_path, gaps_us: list[int]) -> Training:
    """A trace of another tool: operators all through the passes, and no windows."""
    parts = [{"gap": us, "forward": 10_000} for us in gaps_us]
    lines, at = "", 0
    for number, us in enumerate(gaps_us, 1):
        at += us
        lines += f"0/main op:MatMul {at * 1000}..{(at + 10_000) * 1000} step={number}\n"
        at += 10_000
    run = make_run(tmp_path, steps(*parts) + lines)
    run.manifest.recorded_by = "strobe import"
    return Training(run)


def test_an_imported_trace_is_judged_wherever_it_has_operators(tmp_path):
    verdict = host_gap.check(imported(tmp_path, [10_000] * 20))
    assert isinstance(verdict, Finding) and abs(verdict.share - 0.5) < 0.01


def test_long_gaps_in_a_few_steps_of_a_trace_are_a_warning(tmp_path):
    verdict = host_gap.check(
        imported(tmp_path, [100_000 if n % 9 == 8 else 100 for n in range(40)])
    )
    assert isinstance(verdict, Finding) and verdict.is_warning
    # Steps 4 to 40 are judged: 370 ms, and four gaps of 100 ms.
    assert "52% of step time, most of it in 4 of 37 steps" in verdict.title
    healthy = host_gap.check(imported(tmp_path / "healthy", [100] * 40))
    assert isinstance(healthy, Clear)


def test_a_trace_of_few_steps_shows_no_typical_one(tmp_path):
    assert isinstance(host_gap.check(imported(tmp_path, [10_000] * 3)), CannotTell)
