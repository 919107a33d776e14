"""Find words in texts for people that are not plain English: `python scripts/prose.py`.

Checked are the README, the guides and explanations, and the English half of the message catalogue.
Code blocks and quoted code are left out.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "src" / "strobe" / "messages" / "catalogue"
# Measurements as they were written down at the time, and Chinese.
LEFT_OUT = ("docs/explain/history/", "docs/zh/", "docs/reference/", "docs/decisions/")

# What not to write, and what to write instead.
PLAIN = {
    r"told": "reported, shown, printed",
    r"foretold": "predicted, estimated",
    r"dear(?:est)?": "expensive, most expensive",
    r"anew": "again",
    r"for want of": "because of missing",
    r"beside training": "alongside training, in the background",
    r"so many": "the number of",
    r"mend(?:ed|s)?": "fix, fixed",
    r"holds? up (?:training|the loop)": "blocks, stalls",
    r"whoever": "the process that",
    r"makes? way for": "defers to",
    r"unless told": "by default",
    r"surely": "95% confidence interval",
    r"(?:is|are) no [a-z]+ that": "is not a",
}
_PATTERN = re.compile(r"\b(?:" + "|".join(f"({words})" for words in PLAIN) + r")\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")


def main() -> int:
    found = [line for path in documents() for line in problems(path, sentences(path))]
    for area in sorted(CATALOGUE.rglob("*.toml")):
        found += problems(area, messages(area))
    for line in found:
        sys.stdout.write(f"{line}\n")
    return bool(found)


def documents() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if not path.relative_to(ROOT).as_posix().startswith(LEFT_OUT):
            yield path


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Lines outside of code blocks, with their numbers."""
    is_code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, _CODE.sub("", line)


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of the English texts of a file of the catalogue."""
    is_english = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line == 'en = """':
            is_english = True
        elif line == '"""':
            is_english = False
        elif is_english:
            yield number, _CODE.sub("", line)
        elif line.startswith("en = "):
            yield number, _CODE.sub("", json.loads(line.removeprefix("en = ")))


def problems(path: Path, texts: Iterator[tuple[int, str]]) -> Iterator[str]:
    better = list(PLAIN.values())
    for number, text in texts:
        for match in _PATTERN.finditer(text):
            place = f"{path.relative_to(ROOT).as_posix()}:{number}"
            index = (match.lastindex or 1) - 1
            yield f"{place}: instead of {match[0]!r} write: {better[index]}"


if __name__ == "__main__":
    sys.exit(main())
