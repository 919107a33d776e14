"""Whatever rules say in these tests, they can say in Chinese, and for one framework alone."""

import sys
from pathlib import Path
from types import FrameType

import pytest

import strobe.advise
from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.advise.training import Training
from strobe.frameworks import UNKNOWN, Framework
from strobe.messages import Message
from tests.advise.said import english_left, of_others

_RULES = str(Path(strobe.advise.__file__).parent)


@pytest.fixture(autouse=True)
def everything_is_a_complete_message(monkeypatch):
    said: list[Finding | Clear | CannotTell] = []
    frameworks: dict[int, Framework] = {}

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
        if isinstance(verdict, Finding)
        for sentence in _sentences(verdict)
        if frameworks[number] is not UNKNOWN or not _is_about_one(sentence)
        for word in of_others(sentence, frameworks[number])
    }
    assert not foreign, "a fix for another framework"


def _framework(frame: FrameType) -> Framework:
    """Of the training that a rule judges; a drawing mostly has none."""
    above: FrameType | None = frame
    while above is not None:
        if isinstance(training := above.f_locals.get("training"), Training):
            return training.framework
        above = above.f_back
    return UNKNOWN


# Faults that only users of one framework have, and parts of its own data pipeline: a drawing of
# them does not name the framework again.
_OF_ONE_FRAMEWORK = ("data-parallel.", "find-unused-parameters.", "debug-mode.", "data-starvation.")


def _is_about_one(sentence: str) -> bool:
    return isinstance(sentence, Message) and sentence.id.startswith(_OF_ONE_FRAMEWORK)


def _sentences(verdict):
    if isinstance(verdict, Finding):
        why = (verdict.why,) if verdict.why else ()
        return (verdict.title, *why, *verdict.fixes, *(one.what for one in verdict.derivation))
    if isinstance(verdict, Clear):
        return (verdict.why,)
    # Of a fault of our own, the words are Python's.
    return () if verdict.reason.startswith("A bug in Strobe") else (verdict.reason, verdict.hint)
