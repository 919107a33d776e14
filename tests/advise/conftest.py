"""Whatever rules say in these tests, they can say in Chinese."""

import sys
from pathlib import Path

import pytest

import strobe.advise
from strobe.advise.finding import CannotTell, Clear, Finding
from tests.advise.said import english_left

_RULES = str(Path(strobe.advise.__file__).parent)


@pytest.fixture(autouse=True)
def all_is_told_in_chinese(monkeypatch):
    said: list[Finding | Clear | CannotTell] = []

    def listen(kind):
        original = kind.__init__

        def noted(self, *args, **given):
            original(self, *args, **given)
            if sys._getframe(1).f_code.co_filename.startswith(_RULES):
                said.append(self)

        monkeypatch.setattr(kind, "__init__", noted)

    for kind in (Finding, Clear, CannotTell):
        listen(kind)
    yield
    left = {english_left(sentence) for verdict in said for sentence in _sentences(verdict)}
    assert not left - {None}


def _sentences(verdict):
    if isinstance(verdict, Finding):
        return (verdict.title, *verdict.fixes)
    if isinstance(verdict, Clear):
        return (verdict.why,)
    # Of a fault of our own, the words are Python's.
    return () if verdict.reason.startswith("a fault of") else (verdict.reason, verdict.hint)
