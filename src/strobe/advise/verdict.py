"""The sentences that say why a training is slow, and what to change."""

from collections.abc import Mapping

from strobe.advise.finding import CannotTell, Clear, Finding
from strobe.messages import Message, message
from strobe.units import percent, times

# Below it a percentage reads better: 7% instead of 1.07×.
_FEWEST_TIMES = 1.2


def sentence(
    findings: Mapping[str, Finding],
    clear: Mapping[str, Clear],
    unknown: Mapping[str, CannotTell],
    conditions: Mapping[str, Finding] | None = None,
) -> Message:
    """What the recording suffered from; then the most expensive fault with its fix and gain, or how
    sure it is that there is none."""
    verdict = _about_training(findings, clear, unknown)
    for condition in reversed([*(conditions or {}).values()]):
        verdict = message("verdict.after-condition", condition=condition.title, verdict=verdict)
    return verdict


def _about_training(
    findings: Mapping[str, Finding], clear: Mapping[str, Clear], unknown: Mapping[str, CannotTell]
) -> Message:
    worst = next((found for found in findings.values() if not found.is_warning), None)
    if worst is not None:
        verdict = _found(worst)
        others = len(findings) - 1
        if others == 1:
            return message("verdict.one-more", verdict=verdict)
        return message("verdict.more", verdict=verdict, count=others) if others else verdict
    if findings:
        warning = next(iter(findings.values()))
        # Without a rule that passed nothing is known of step time.
        id = "verdict.warning-only" if clear else "verdict.warning"
        return message(id, title=warning.title, fix=warning.fixes[0])
    if not clear:
        reasons = {rule.reason for rule in unknown.values()}
        only = next(iter(reasons)) if len(reasons) == 1 else message("verdict.missing-data")
        return message("verdict.unknown", reason=only)
    passed = message("verdict.one-passed" if len(clear) == 1 else "verdict.passed",
                     count=len(clear))  # fmt: skip
    if unknown:
        passed = message("verdict.skipped", passed=passed, count=len(unknown))
    return message("verdict.all-clear", passed=passed)


def _found(finding: Finding) -> Message:
    if not finding.fixes:
        return message("verdict.found-without-fix", title=finding.title, gain=gain(finding))
    return message("verdict.found", title=finding.title, fix=finding.fixes[0], gain=gain(finding))


def gain(finding: Finding) -> Message:
    """about 2.6× faster; about 7% faster; 1.5× to 3.0× faster."""
    if finding.speedup_range is None:
        if finding.expected_speedup < _FEWEST_TIMES:
            return message("verdict.about-percent", percent=percent(finding.expected_speedup - 1))
        return message("verdict.about-times", times=_times(finding.expected_speedup))
    least, most = finding.speedup_range
    if most < _FEWEST_TIMES:
        return message("verdict.range-of-percent", least=percent(least - 1), most=percent(most - 1))
    # One unit for both ends.
    return message("verdict.range-of-times", least=_times(least), most=_times(most))


def _times(speedup: float) -> Message:
    return message("units.times", factor=times(speedup).removesuffix("×"))
