"""What the rules say, in Chinese. Rules speak English alone; `chinese.txt` is the phrase book.

A sentence of a rule is one of its templates with names and numbers put in, and sometimes with
smaller phrases. So it is found by its template, and what was put in is looked up in turn.
"""

import functools
import re
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

from strobe.advise import Advice

GAP = "{}"

# Names in a sentence are somebody's: a very long one could be matched in very many ways.
_LONGEST = 1_000


class Phrase(NamedTuple):
    english: str
    chinese: str
    pattern: re.Pattern[str]

    @property
    def said(self) -> int:
        """How much of a sentence the phrase itself accounts for, and not what is put in."""
        return len(self.english.replace(GAP, ""))


@functools.cache
def phrases() -> tuple[Phrase, ...]:
    """Those that say most come first: of two that fit a sentence they are the closer ones."""
    text = resources.files("strobe.show").joinpath("chinese.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [
        Phrase(english, chinese, re.compile(re.escape(english).replace(r"\{\}", "(.*?)")))
        for english, chinese in zip(lines[::2], lines[1::2], strict=True)
    ]
    return tuple(sorted(found, key=lambda phrase: -phrase.said))


@functools.lru_cache(maxsize=4096)
def in_chinese(sentence: str) -> str | None:
    """None where the book has no such phrase: a name, a number, or a sentence that is missing."""
    if len(sentence) > _LONGEST:
        return None
    for phrase in phrases():
        match = phrase.pattern.fullmatch(sentence)
        if match is not None:
            return _filled(phrase.chinese, [in_chinese(p) or p for p in match.groups()])
    return None


def _filled(text: str, parts: list[str]) -> str:
    return re.sub(r"\{(\d)\}", lambda place: parts[int(place[1]) - 1], text)


def sentences(advice: Advice) -> Iterator[str]:
    """All that a page shows of it."""
    if not advice.findings:
        yield advice.verdict  # else a page makes it of the most expensive finding
    for finding in (*advice.conditions.values(), *advice.findings.values()):
        yield finding.title
        if finding.why:
            yield finding.why
        yield from (figure.what for figure in finding.derivation)
        yield from finding.fixes
    for clear in advice.clear.values():
        yield clear.why
    for unknown in advice.cannot_tell.values():
        yield unknown.reason
        yield unknown.hint


def book(advice: Advice) -> dict[str, str]:
    """Every sentence of it in Chinese, by the English one."""
    told = {sentence: in_chinese(sentence) for sentence in sentences(advice)}
    return {english: chinese for english, chinese in told.items() if chinese is not None}
