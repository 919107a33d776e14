"""What came of a prediction, when the script was recorded again."""

import json
from types import SimpleNamespace

import pytest

from strobe.advise import Advice, outcome
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.messages import CHINESE, in_language
from strobe.model.manifest import Manifest
from tests.analyse.drawings import MODEL
from tests.helpers import make_run

RULE = "data-starvation"
FIX = "Set `num_workers=2, persistent_workers=True` on the DataLoader at train.py:3"
FOUND = Finding("", 0.5, 2.2, (FIX,), (), where="train.py:3")
COMPARISON = SimpleNamespace(mean_a_ns=60_000, mean_b_ns=30_000)


@pytest.fixture
def runs(tmp_path):
    """A run with a loader of so many workers, of a command."""

    def made(name: str, workers: int, *command: str):
        settings = {"num_workers": workers, "persistent_workers": workers > 0, "host": "h"}
        place = {"rank": 0, "what": "data loader", "number": 1, "file": "train.py", "line": 3,
                 "details": json.dumps(settings)}  # fmt: skip
        columns = {key: [value] for key, value in place.items()}
        run = make_run(tmp_path / name, MODEL, {"places": columns})
        run.manifest = Manifest(0, "strobe run", command=["python", *command])
        return run

    return made


def judged(monkeypatch, before: Advice, after: Advice, a, b):
    answers = {id(a): before, id(b): after}
    monkeypatch.setattr(outcome, "advise", lambda run: answers[id(run)])
    return outcome.outcome(a, b, COMPARISON)


GONE = Advice(clear={RULE: Clear("")})
STILL = Advice(findings={RULE: FOUND})


def test_a_finding_that_is_gone(monkeypatch, runs):
    a, b = runs("a", 0, "src/train.py"), runs("b", 2, "train.py", "--workers", "2")
    found = judged(monkeypatch, STILL, GONE, a, b)
    assert found.sentence == (
        "Strobe predicted that fixing data-starvation makes A about 2.2× faster. The finding is "
        "gone in B, and the mean step is 2.0× faster."
    )
    assert in_language(found.sentence, CHINESE) == (
        "Strobe 对 A 的预测：修复 data-starvation 后预计速度可达原来的 2.2 倍。"
        "该问题在 B 中已消失，平均迭代速度是 A 的 2.0 倍。"
    )
    assert found.to_json() == {
        "rule": RULE, "predicted_speedup": 2.2, "measured_speedup": 2.0, "is_gone": True,
        "is_crowded": False,
    }  # fmt: skip


def test_a_fix_that_did_not_help_is_reported_too(monkeypatch, runs):
    a, b = runs("a", 0, "train.py"), runs("b", 2, "train.py")
    busy = Advice(findings={RULE: FOUND}, conditions={"busy-machine": FOUND})
    monkeypatch.setattr(COMPARISON, "mean_b_ns", 90_000)
    sentence = judged(monkeypatch, STILL, busy, a, b).sentence
    assert sentence == (
        "Strobe predicted that fixing data-starvation makes A about 2.2× faster. B has the fix "
        "applied but still has the finding, and the mean step is 1.5× slower. Other programs used "
        "the cores during these runs, which changes step times too."
    )


def test_where_nothing_was_predicted_or_changed_nothing_is_said(monkeypatch, runs):
    a, b = runs("a", 0, "train.py"), runs("b", 0, "train.py")
    assert judged(monkeypatch, STILL, STILL, a, b) is None  # the fix was not applied
    assert judged(monkeypatch, GONE, GONE, a, b) is None
    unknown = Advice(cannot_tell={RULE: CannotTell("", "")})
    assert judged(monkeypatch, STILL, unknown, a, b) is None
    warm = Finding("", 0.5, 1.0, (FIX,), (), saves_at_start_ns=10)
    assert judged(monkeypatch, Advice(findings={"warm-up": warm}), GONE, a, b) is None
    other = runs("other", 2, "evaluate.py")
    assert judged(monkeypatch, STILL, GONE, a, other) is None
