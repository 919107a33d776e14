"""Messages for people, each with an id, in English and in Chinese.

The catalogue is a folder of TOML files, `catalogue/AREA.toml`, with one table per message:

    [title-long-wait]
    en = "Training waits {share} of its time for data."
    zh = "训练有 {share} 的时间在等待数据。"

Sentences of the web pages are in `catalogue/pages/`; `scripts/build_ui.py` hands them to the pages.

`message("AREA.title-long-wait", share="62%")` is the English text, and remembers its id and
values, so that it can be shown in another language; `localized(…)` is in the user's. Values are
text that is already formatted, or other messages.
"""

import functools
import json
import os
import re
from importlib import resources
from typing import Any

ENGLISH, CHINESE = "en", "zh"
LANGUAGES = (ENGLISH, CHINESE)
LANGUAGE_VARIABLE = "STROBE_LANG"

_TABLE = re.compile(r"\[(?:([\w-]+)|\"([^\"]+)\")\]")
_TEXT = re.compile(r"(\w+)\s*=\s*(\".*\")")
_GAP = re.compile(r"\{(\w+)\}")


class Message(str):
    """English text that knows its id and its values."""

    id: str
    values: dict[str, str]

    def __new__(cls, text: str, id: str = "", values: dict[str, str] | None = None) -> "Message":
        made = super().__new__(cls, text)
        made.id, made.values = id, values or {}
        return made


def message(id: str, **values: Any) -> Message:
    """The message of this id, with these values in its gaps."""
    texts = {name: str(value) if not isinstance(value, str) else value
             for name, value in values.items()}  # fmt: skip
    return Message(_filled(_template(id, ENGLISH), texts), id, texts)


def in_language(text: str, language: str) -> str:
    """A message in another language; any other text (a name, a number) as it is."""
    if not isinstance(text, Message) or not text.id or language == ENGLISH:
        return text
    values = {name: in_language(value, language) for name, value in text.values.items()}
    return _filled(_template(text.id, language), values)


def localized(id: str, **values: Any) -> str:
    """The message of this id in the user's language: for what a command prints to a person."""
    return in_language(message(id, **values), users_language())


def users_language() -> str:
    """What the environment asks for: STROBE_LANG first, then the locale."""
    for name in (LANGUAGE_VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return CHINESE if value.lower().startswith(CHINESE) else ENGLISH
    return ENGLISH


def manual(name: str, language: str) -> str | None:
    """A manual in another language than English, as Markdown under its title: `manuals/zh/NAME.md`.

    English manuals are the docstrings of what they explain.
    """
    file = resources.files(__name__).joinpath("manuals", language, f"{name}.md")
    return file.read_text(encoding="utf-8") if file.is_file() else None


def gaps(template: str) -> set[str]:
    """The names of the values that a text has gaps for."""
    return set(_GAP.findall(template))


def areas(folder: str = "") -> list[str]:
    """The files of the catalogue, or of a folder of it (`pages/`: of the web pages), by name."""
    files = resources.files(__name__).joinpath("catalogue", folder).iterdir()
    names = (file.name for file in files if file.name.endswith(".toml"))
    return sorted(f"{folder}{name.removesuffix('.toml')}" for name in names)


@functools.cache
def texts_of(area: str) -> dict[str, dict[str, str]]:
    """By the id within its area, by language.

    tomllib is newer than the oldest Python that Strobe runs on; the files are TOML of the simplest
    form: tables with one basic string per line.
    """
    file = resources.files(__name__).joinpath("catalogue", f"{area}.toml")
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if table := _TABLE.fullmatch(line.strip()):
            current = found[table[1] or table[2]] = {}
        elif text := _TEXT.fullmatch(line.strip()):
            current[text[1]] = json.loads(text[2])
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"{area}.toml:{number}: neither a table nor a text: {line!r}")
    return found


def _template(id: str, language: str) -> str:
    area, _, name = id.partition(".")
    return texts_of(area)[name][language]


def _filled(template: str, values: dict[str, str]) -> str:
    return _GAP.sub(lambda gap: values[gap[1]], template)
