"""Whatever a rule can say is in the phrase book; tests/advise/conftest.py listens to them."""

import ast
import re
from pathlib import Path

import strobe.advise
from strobe.advise import Advice
from strobe.advise.data.loader_causes import STAGE_FIXES
from strobe.advise.finding import Clear, Finding
from strobe.show.text.chinese import GAP, book, in_chinese, phrases

_PROSE = re.compile(r"[a-z]{2,} [a-z{]|[a-z}],? [a-z]{2,}")
_SQL = re.compile(r"\b(SELECT|FROM|WHERE|GROUP BY|JOIN|AND|ORDER BY|LIKE|CREATE|UNION|BETWEEN)\b")
# Names of places and columns, errors of the command line, and parts of the English verdict.
_NOT_SHOWN = {
    "model call", "data loader", "data loop", "data worker ", "rank, device", "rank, step",
    "a step", "gradient of ", "at once", "less often", "strobe import", "did you mean {}; ",
    "no rule named {}", "smaller finding", "about {} faster", "{} to {} faster", " {} below.",
    ", {} skipped for missing data", "{} can be avoided", "dispatch {}",
}  # fmt: skip


def templates(source: str) -> set[str]:
    """The strings of a module that read like English, with {} for what is put in."""
    tree = ast.parse(source)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside.add(id(node.value))  # docstrings
        if isinstance(node, ast.JoinedStr):
            inside |= {id(value) for value in node.values}
        if isinstance(node, ast.FormattedValue) and node.format_spec:
            inside.add(id(node.format_spec))
    found = {_template(node) for node in ast.walk(tree) if id(node) not in inside}
    return {t for t in found if _PROSE.search(t) and not _SQL.search(t) and "\n" not in t}


def _template(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else GAP for v in node.values]
        return "".join(str(part) for part in parts)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return re.sub(r"\{\w+\}", GAP, str(node.value)) if is_text else ""


def is_known(template: str) -> bool:
    """Whether a phrase has its words in this order; rules join some strings to one sentence."""
    words = [re.escape(part) for part in template.split(GAP)]
    return any(re.search(".*?".join(words), phrase.english) for phrase in phrases())


def test_whatever_stands_in_a_rule_stands_in_the_book():
    rules = Path(strobe.advise.__file__).parent
    missing = {
        f"{path.name}: {template}"
        for path in rules.glob("*.py")
        for template in templates(path.read_text(encoding="utf-8")) - _NOT_SHOWN
        if not is_known(template)
    }
    assert not missing, "put these into src/strobe/show/chinese.txt"


def test_every_gap_of_a_phrase_is_filled_and_none_twice():
    for phrase in phrases():
        gaps = sorted(re.findall(r"\{(\d)\}", phrase.chinese))
        assert gaps == [str(n + 1) for n in range(phrase.english.count(GAP))], phrase.english
        assert GAP not in phrase.chinese
    english = [phrase.english for phrase in phrases()]
    assert len(set(english)) == len(english)


def test_phrases_inside_of_phrases_are_told_too():
    told = in_chinese(f"{STAGE_FIXES['reading']} at train.py:31")
    assert told == "把会反复读取的数据缓存在内存中，把大量小文件合并成少数大文件（train.py:31）"
    assert in_chinese("aten::mm") is None


def test_a_book_holds_all_that_the_page_shows():
    found = Finding("memory grows by 1.00 MiB per step, 2.00 GiB so far", 0.1, 1.1, ("no one",), ())
    told = book(
        Advice(findings={"memory-growth": found}, clear={"gc-pause": Clear("memory settles")})
    )
    assert told[found.title] == "内存每个迭代增长 1.00 MiB，目前已增长 2.00 GiB"
    assert told["memory settles"] == "内存趋于稳定" and "no one" not in told


def test_a_name_as_long_as_a_book_is_left_alone():
    assert in_chinese("a in b (c) at " * 100_000) is None
