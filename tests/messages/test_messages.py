"""The catalogue is complete, and messages can be had in both languages."""

import ast
import copy
import re
import sys
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pytest

import strobe
from strobe import messages
from strobe.messages import CHINESE, ENGLISH, LANGUAGES, gaps, in_language, message, users_language

PACKAGE = Path(strobe.__file__).parent
ALL = [
    (area, name, texts)
    for folder in messages.FOLDERS
    for area in messages.areas(folder)
    for name, texts in messages.texts_of(area).items()
]


class Use(NamedTuple):
    """A call with the id of a message."""

    place: str
    values: set[str] | None  # names of the values; None if they are not written out


def uses() -> dict[str, list[Use]]:
    """Every id in the source, and where it is used."""
    found: dict[str, list[Use]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            first, name = node.args[0], getattr(node.func, "id", getattr(node.func, "attr", ""))
            texts = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
            for text in (text.value for text in texts if isinstance(text, ast.Constant)):
                if name not in ("message", "localized", "notice", "of") or type(text) is not str:
                    continue
                id = f"recording.{text}" if name == "notice" else text
                names = {word.arg for word in node.keywords}
                use = Use(f"{path.name}:{node.lineno}", None if None in names else names)
                found.setdefault(id, []).append(use)
    return found


def test_every_message_has_all_languages_with_the_same_gaps():
    for area, name, texts in ALL:
        assert set(texts) == set(LANGUAGES), f"{area}.{name}"
        assert gaps(texts[ENGLISH]) == gaps(texts[CHINESE]), f"{area}.{name}"
        assert re.search(r"[\u4e00-\u9fff]", texts[CHINESE]) or not re.search(
            r"[a-z]{3,} [a-z]{3,}", texts[ENGLISH]
        ), f"{area}.{name} is not translated"


def test_every_id_that_is_used_is_there():
    known = {f"{area}.{name}" for area, name, _ in ALL}
    missing = {id: places for id, places in uses().items() if id not in known}
    assert not missing


def test_every_gap_is_given_a_value():
    texts = {f"{area}.{name}": gaps(found[ENGLISH]) for area, name, found in ALL}
    used = uses()
    for id, places in used.items():
        for place, values in places:
            wanted = texts[id] | (texts.get(f"{id}-hint", set()) if values is not None else set())
            if values is not None and "hint" in values:
                wanted = texts[id]
            assert values is None or wanted <= values, f"{place}: {id} needs {wanted - values}"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is new in Python 3.11")
def test_the_files_are_toml():
    import tomllib

    for area in {area for area, _, _ in ALL}:
        file = resources.files(messages).joinpath("catalogue", f"{area}.toml")
        assert tomllib.loads(file.read_text(encoding="utf-8")) == messages.texts_of(area)


@pytest.fixture
def catalogue(monkeypatch):
    texts = {
        "wait": {"en": "waits {share} of {what}", "zh": "{what}有 {share} 在等待"},
        "step": {"en": "step time", "zh": "迭代时间"},
    }
    monkeypatch.setattr(messages, "texts_of", lambda area: texts)


def test_a_message_is_english_text_that_can_be_had_in_chinese(catalogue):
    found = message("test.wait", share="62%", what=message("test.step"))
    assert found == "waits 62% of step time"
    assert in_language(found, CHINESE) == "迭代时间有 62% 在等待"
    assert in_language(found, ENGLISH) == found


def test_other_text_stays_as_it_is(catalogue):
    assert in_language("train.py:31", CHINESE) == "train.py:31"
    found = message("test.wait", share="62%", what="train.py")
    assert in_language(found, CHINESE) == "train.py有 62% 在等待"


def test_a_copy_is_a_message_too(catalogue):
    found = copy.deepcopy(message("test.step"))
    assert in_language(found, CHINESE) == "迭代时间"


@pytest.mark.parametrize(("variables", "language"), [
    ({}, ENGLISH), ({"LANG": "zh_CN.UTF-8"}, CHINESE), ({"LANG": "C.UTF-8"}, ENGLISH),
    ({"STROBE_LANG": "zh", "LANG": "en_US.UTF-8"}, CHINESE),
    ({"STROBE_LANG": "en", "LANG": "zh_CN.UTF-8"}, ENGLISH),
])  # fmt: skip
def test_the_language_of_the_user(monkeypatch, variables, language):
    for name in ("STROBE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert users_language() == language
