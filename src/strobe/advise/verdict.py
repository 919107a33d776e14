"""The sentences that say why a training is slow, and what to change."""

import re
from collections.abc import Mapping

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.units import percent, times

# A longer fix is cut at its first colon.
_LONGEST_FIX = 90

# Below it a percentage reads better: 7% instead of 1.07×.
_FEWEST_TIMES = 1.2


def sentence(
    findings: Mapping[str, Finding],
    clear: Mapping[str, Clear],
    unknown: Mapping[str, CannotTell],
    conditions: Mapping[str, Finding] | None = None,
) -> str:
    """What the recording suffered from; then the most expensive fault with its fix and gain, or how
    sure it is that there is none."""
    about_machine = [f"{condition.title}." for condition in (conditions or {}).values()]
    return " ".join([*about_machine, _about_training(findings, clear, unknown)])


def _about_training(
    findings: Mapping[str, Finding], clear: Mapping[str, Clear], unknown: Mapping[str, CannotTell]
) -> str:
    worst = next((found for found in findings.values() if not found.is_warning), None)
    if worst is not None:
        others = len(findings) - 1
        more = f" {_some(others, 'smaller finding')} below." if others else ""
        return f"{_in_short(worst)}: {gain(worst)}.{more}"
    if findings:
        # Without a rule that passed nothing is known of step time.
        passed = "No fault costs 5% of step time. " if clear else ""
        return f"{passed}Warning: {_in_short(next(iter(findings.values())))}."
    if not clear:
        reasons = {rule.reason for rule in unknown.values()}
        why = (
            next(iter(reasons)) if len(reasons) == 1 else "the data that the rules need is missing"
        )
        return f"Cannot tell why training is slow: {why}."
    skipped = f", {len(unknown)} skipped for missing data" if unknown else ""
    return f"No fault costs 5% of step time: {_some(len(clear), 'check')} passed{skipped}."


def _in_short(finding: Finding) -> str:
    """What is wrong and what to change; the details are below."""
    title = _first_upper(re.split(r"[:;] ", finding.title.rstrip("."))[0])
    if not finding.fixes:
        return title
    fix = finding.fixes[0].rstrip(".")
    if len(fix) > _LONGEST_FIX:
        fix = fix.split(": ")[0]
    is_named = finding.where is None or finding.where in fix or finding.where in title
    place = "" if is_named else f" ({finding.where})"
    return f"{title}. {_first_upper(fix)}{place}"


def gain(finding: Finding) -> str:
    """about 2.6× faster; about 7% faster; 1.5× to 3.0× faster."""
    if finding.speedup_range is not None:
        least, most = finding.speedup_range
        return f"{_gained(least)} to {_gained(most)} faster"
    return f"about {_gained(finding.expected_speedup)} faster"


def _gained(speedup: float) -> str:
    return percent(speedup - 1) if speedup < _FEWEST_TIMES else times(speedup)


def _first_upper(text: str) -> str:
    # Names keep their letters: aten::mm, train.py.
    first_word = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first_word.isalpha() else text


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
