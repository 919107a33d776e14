import pytest

import strobe
from strobe.advise import advise
from strobe.advise.finding import Clear, Finding
from strobe.advise.rules import gradients_in_evaluation
from strobe.advise.training import Training
from tests.advise.drawings import of_framework, same, steps
from tests.faults.processes import TRAINING, write
from tests.helpers import make_run
from tests.warm import python, recorded

# 17 steps of 100 us are judged.
STEPS = steps(*same({"gap": 60, "forward": 40}, 20))
PLACES = {"places": {
    "rank": [0, 0], "what": ["model call"] * 2, "number": [1, 2], "file": ["/job/train.py"] * 2,
    "line": [30, 17], "function": ["fit", "evaluate"],
    "details": ['{"gradients": true, "training": true}', '{"gradients": true, "training": false}'],
}}  # fmt: skip


def passes(length_us: int, name: str) -> str:
    return "".join(
        f"0/steps annotation:{name} {k * 100_000}..{k * 100_000 + length_us * 1000}\n"
        for k in range(20)
    )


def judged(tmp_path, spans: str):
    return gradients_in_evaluation.check(
        Training(of_framework(make_run(tmp_path, STEPS + spans, PLACES)))
    )


def test_a_fifth_of_the_passes_is_the_cost(tmp_path):
    verdict = judged(tmp_path, passes(50, "evaluation~with~gradients"))
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - 0.1) < 1e-9 and not verdict.is_certain and not verdict.is_warning
    assert verdict.where == "train.py:17"
    assert verdict.title == (
        "Evaluation at train.py:17 runs with gradients enabled, which costs about 10% of step time."
    )
    assert verdict.why.startswith("17 forward passes in evaluation mode recorded gradients")
    assert verdict.fixes[0] == "Put `with torch.no_grad():` around the evaluation at train.py:17"
    assert verdict.fixes[1].endswith("before `def evaluate`")


def test_a_little_is_a_warning_that_is_told_all_the_same(tmp_path):
    run = make_run(tmp_path, STEPS + passes(20, "evaluation~with~gradients"), PLACES)
    advice = advise(run, (gradients_in_evaluation,))
    finding = advice.findings["gradients-in-evaluation"]
    assert finding.is_warning and abs(finding.share - 0.04) < 1e-9


def test_evaluation_without_gradients_and_next_to_none_are_clear(tmp_path):
    assert isinstance(judged(tmp_path / "a", passes(50, "evaluation")), Clear)
    assert isinstance(judged(tmp_path / "b", passes(1, "evaluation~with~gradients")), Clear)


def test_a_teacher_that_no_optimizer_knows_costs_its_backward_pass_too(tmp_path):
    # Steps of 40 us forward, 60 us backward; the teacher's forward takes 10 us, its backward 45.
    text = steps(*same({"forward": 40, "backward": 60}, 20), window=(6, 7))
    lines = text.count("\n")
    for k in range(20):
        text += (
            f"0/steps annotation:forward~in~evaluation~mode {k * 100_000}..{k * 100_000 + 10_000}\n"
        )
    pairs = []
    for k in (5, 6):
        begin = k * 100_000
        text += f"0/main op:conv {begin + 1000}..{begin + 9000} step={k + 1}\n"
        text += f"0/main op:conv~backward {begin + 40_000}..{begin + 85_000} step={k + 1}\n"
        pairs.append((lines + 20 + 2 * (k - 5), lines + 21 + 2 * (k - 5)))
    links = {"from_id": [a for a, _ in pairs], "to_id": [b for _, b in pairs],
             "kind": ["forward_backward"] * 2}  # fmt: skip
    places = {name: [*values] for name, values in PLACES["places"].items()}
    judge = gradients_in_evaluation.check
    run = make_run(tmp_path / "learns", text, {"links": links, "places": places})
    assert isinstance(judge(Training(run)), Clear)
    places["details"][1] = '{"gradients": true, "training": false, "learns": false}'
    verdict = judge(
        Training(of_framework(make_run(tmp_path / "not", text, {"links": links, "places": places})))
    )
    assert isinstance(verdict, Finding)
    assert abs(verdict.share - (0.2 * 10 + 45) / 100) < 1e-9
    assert verdict.where == "train.py:17" and "backward passes went through" in verdict.why
    assert "requires_grad_(False)" in verdict.fixes[1]


TEACHER = """
teacher = torch.nn.Sequential(torch.nn.Linear(8, 512), torch.nn.Linear(512, 1)).eval()
for _ in range(30):
    optimizer.zero_grad()
    x = torch.randn(4, 8)
    wanted = teacher(x)
    (net(x) - wanted).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.timing("a fault costs what it usually does")
def test_a_real_teacher(tmp_path, is_frozen: bool):
    pytest.importorskip("torch")
    text = TEACHER.replace(".eval()", ".eval().requires_grad_(False)") if is_frozen else TEACHER
    python(*recorded(tmp_path / "run", write(tmp_path, TRAINING + text)))
    with strobe.open_run(tmp_path / "run") as run:
        verdict = gradients_in_evaluation.check(Training(run.run))
    if is_frozen:
        assert isinstance(verdict, Clear)
    else:
        assert isinstance(verdict, Finding) and verdict.where == "train.py:20"
        assert verdict.share > 0


@pytest.mark.slow
@pytest.mark.parametrize("is_repaired", [False, True])
@pytest.mark.timing("a fault costs what it usually does")
def test_a_real_training(tmp_path, is_repaired: bool):
    pytest.importorskip("torch")
    script = write(
        tmp_path,
        TRAINING
        + f"""
def evaluate():
    net.eval()
    with torch.set_grad_enabled({not is_repaired}):
        for _ in range(40):
            net(torch.randn(4, 8))
    net.train()
for _ in range(30):
    train(1)
    evaluate()
""",
    )
    python(*recorded(tmp_path / "run", "--light", script))
    with strobe.open_run(tmp_path / "run") as run:
        verdict = gradients_in_evaluation.check(Training(run.run))
    if is_repaired:
        assert isinstance(verdict, Clear)
    else:
        assert isinstance(verdict, Finding) and verdict.where == "train.py:20"
        assert 0.05 < verdict.share < 0.2
