"""Whatever rules say in these tests, they can say in Chinese, and for one framework alone."""

import sys
from pathlib import Path
from types import FrameType

import pytest

import strobe.advise
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.framework import UNKNOWN
from strobe.advise.training import Training
from tests.advise.said import english_left, of_others

_RULES = str(Path(strobe.advise.__file__).parent)


@pytest.fixture(autouse=True)
def everything_is_a_complete_message(monkeypatch):
    said: list[Finding | Clear | CannotTell] = []
    frameworks: dict[int, str] = {}

    def listen(kind):
        original = kind.__init__

        def noted(self, *args, **given):
            original(self, *args, **given)
            frame = sys._getframe(1)
            if frame.f_code.co_filename.startswith(_RULES):
                frameworks[len(said)] = _framework(frame)
                said.append(self)

        monkeypatch.setattr(kind, "__init__", noted)

    for kind in (Finding, Clear, CannotTell):
        listen(kind)
    yield
    left = {english_left(sentence) for verdict in said for sentence in _sentences(verdict)}
    assert not left - {None}
    foreign = {
        (word, sentence)
        for number, verdict in enumerate(said)
        if frameworks[number] != UNKNOWN and isinstance(verdict, Finding)
        for sentence in _sentences(verdict)
        for word in of_others(sentence, frameworks[number])
    }
    assert not foreign, "a fix for another framework"


def _framework(frame: FrameType) -> str:
    """Of the training that a rule judges; a drawing mostly has none."""
    training = frame.f_locals.get("training")
    return training.framework if isinstance(training, Training) else UNKNOWN


def _sentences(verdict):
    if isinstance(verdict, Finding):
        why = (verdict.why,) if verdict.why else ()
        return (verdict.title, *why, *verdict.fixes, *(one.what for one in verdict.derivation))
    if isinstance(verdict, Clear):
        return (verdict.why,)
    # Of a fault of our own, the words are Python's.
    return () if verdict.reason.startswith("A bug in Strobe") else (verdict.reason, verdict.hint)
