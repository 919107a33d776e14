"""The one sentence that says why a training is slow, and what to change."""

import re
from collections.abc import Mapping

from strobe.advise.finding import CannotTell, Clear, Finding

# What is longer is told up to its first colon.
_LONGEST_FIX = 80

# Below it a number of times reads worse than percent: "1.07x" against "7 %".
_TOLD_AS_TIMES = 1.2


def sentence(
    findings: Mapping[str, Finding], clear: Mapping[str, Clear], unknown: Mapping[str, CannotTell]
) -> str:
    """The dearest fault with its fix and gain; else how sure it is that there is none."""
    dearest = next((found for found in findings.values() if not found.is_warning), None)
    if dearest is not None:
        return _of_fault(dearest, len(findings) - 1)
    if findings:
        warning = next(iter(findings.values()))
        return f"No fault costs 5 % of step time, but {_told(warning)}"
    if not clear:
        reasons = {rule.reason for rule in unknown.values()}
        why = next(iter(reasons)) if len(reasons) == 1 else "what the rules need was not recorded"
        return f"Nothing can be told: {why}"
    told = f"No fault found that costs 5 % of step time: {_some(len(clear), 'rule')} clear"
    return f"{told}, {len(unknown)} could not tell" if unknown else told


def _of_fault(finding: Finding, others: int) -> str:
    told = f"{_first_upper(_told(finding))}, {gain(finding)}"
    return f"{told} (and {_some(others, 'smaller fault')} below)" if others else told


def _told(finding: Finding) -> str:
    """What is wrong and what to change, in short: details stand behind a colon, and below."""
    title = re.split(r"[:;] ", finding.title.rstrip("."))[0]
    if not finding.fixes:
        return title
    fix = finding.fixes[0].rstrip(".")
    if len(fix) > _LONGEST_FIX:
        fix = fix.split(": ")[0]
    is_said = finding.where is None or finding.where in fix or finding.where in title
    return f"{title}: {fix}" if is_said else f"{title}: {fix} ({finding.where})"


def gain(finding: Finding) -> str:
    """about 2.6x faster; about 7 % faster."""
    speedup = finding.expected_speedup
    if speedup < _TOLD_AS_TIMES:
        return f"about {(speedup - 1) * 100:.0f} % faster"
    return f"about {speedup:.1f}x faster"


def _first_upper(text: str) -> str:
    # Names keep their letters: aten::mm, train.py.
    first_word = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first_word.isalpha() else text


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
