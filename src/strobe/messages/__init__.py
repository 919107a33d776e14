"""Messages for people, each with an id, in English and in Chinese.

The catalogue is a folder of TOML files, `catalogue/AREA.toml`, with one table per message:

    [title-long-wait]
    en = "Training waits {share} of its time for data."
    zh = "训练有 {share} 的时间在等待数据。"

Sentences of the web pages are in `catalogue/pages/`; `scripts/build_ui.py` hands them to the pages.
Help and output of the commands are in `catalogue/cli/`, errors and warnings in `catalogue/errors/`.
A text of several lines stands between lines of three quotation marks.

`message("AREA.title-long-wait", share="62%")` is the English text, and remembers its id and
values, so that it can be shown in another language; `localized(…)` is in the user's. Values are
text that is already formatted, or other messages.
"""

import functools
import os
import re
from typing import Any

ENGLISH, CHINESE = "en", "zh"
LANGUAGES = (ENGLISH, CHINESE)
LANGUAGE_VARIABLE = "STROBE_LANG"

_TABLE = re.compile(r"\[(?:([\w-]+)|\"([^\"]+)\")\]")
_TEXT = re.compile(r"(\w+)\s*=\s*(\".*\")")
_OPENING = re.compile(r"(\w+)\s*=\s*\"\"\"")
_CLOSING = '"""'
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
    try:
        return _file("manuals", language, f"{name}.md")
    except FileNotFoundError:
        return None


def gaps(template: str) -> set[str]:
    """The names of the values that a text has gaps for."""
    return set(_GAP.findall(template))


def areas(folder: str = "") -> list[str]:
    """The files of the catalogue, or of a folder of it (`pages/`: of the web pages), by name."""
    names = (name for name in os.listdir(_path("catalogue", folder)) if name.endswith(".toml"))
    return sorted(f"{folder}{name[:-5]}" for name in names)


FOLDERS = ("", "pages/", "cli/", "errors/")


@functools.cache
def texts_of(area: str) -> dict[str, dict[str, str]]:
    """By the id within its area, by language.

    tomllib is newer than the oldest Python that Strobe runs on; the files are TOML of the simplest
    form: tables with one basic string per line, or with several lines between `\"""`.
    """
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    language, block = "", list[str]()
    is_block = False
    for number, line in enumerate(_file("catalogue", f"{area}.toml").splitlines(), 1):
        if is_block and line == _CLOSING:
            current[language], is_block = "".join(block), False
        elif is_block:
            block.append(f"{line}\n")
        elif opening := _OPENING.fullmatch(line):
            language, block, is_block = opening[1], [], True
        elif text := _TEXT.fullmatch(line):
            current[text[1]] = _unquoted(text[2])
        elif table := _TABLE.fullmatch(line.strip()):
            current = found[table[1] or table[2]] = {}
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"{area}.toml:{number}: neither a table nor a text: {line!r}")
    return found


def has_message(id: str) -> bool:
    area, _, name = id.partition(".")
    return name in texts_of(area)


def _path(*parts: str) -> str:
    return os.path.join(os.path.dirname(__file__), *parts)


def _file(*parts: str) -> str:
    # Not importlib.resources, which takes longer to import than everything else here.
    with open(_path(*parts), encoding="utf-8") as file:
        return file.read()


def _unquoted(text: str) -> str:
    if "\\" not in text:
        return text[1:-1]
    import json

    unquoted: str = json.loads(text)
    return unquoted


def _template(id: str, language: str) -> str:
    area, _, name = id.partition(".")
    return texts_of(area)[name][language]


def _filled(template: str, values: dict[str, str]) -> str:
    return _GAP.sub(lambda gap: values[gap[1]], template)
