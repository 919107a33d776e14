"""Why a training is slow: the answers of all rules, and the findings by their cost."""

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from strobe import messages
from strobe.advise.finding import CannotTell, Clear, Finding, Verdict
from strobe.advise.rules import CONDITIONS, EXPLAINS, RULES, Rule
from strobe.advise.thresholds import SMALLEST_SHARE
from strobe.advise.training import Training
from strobe.advise.verdict import sentence
from strobe.analyse.tables.steps.steps import ENOUGH_STEPS, WARM_UP_STEPS
from strobe.errors import UsageError
from strobe.messages import ENGLISH, message
from strobe.store.run import Run
from strobe.units import count

# A cause explains a symptom if fixing the cause gains at least this part of the symptom's time.
EXPLAINING_RATIO = 0.5

# Other programs add noise: if they cost all of step time, a fault must cost this much more.
CROWDED_RATIO = 0.1


@dataclass(repr=False)
class Advice:
    """The answers of all rules for a run; the most expensive finding comes first."""

    conditions: dict[str, Finding] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    clear: dict[str, Clear] = field(default_factory=dict)
    cannot_tell: dict[str, CannotTell] = field(default_factory=dict)
    total_ns: int = 0  # of the steps judged
    step_count: int = 0  # judged
    run: str = ""  # the folder of the run

    @property
    def verdict(self) -> str:
        """What is wrong and what to change, in a few sentences."""
        return sentence(self.findings, self.clear, self.cannot_tell, self.conditions)

    def cost_ns(self, finding: Finding) -> int:
        return round(finding.share * self.total_ns)

    def to_json(self) -> dict[str, Any]:
        """What `strobe advise --json` prints."""
        return {
            "ok": True,
            "run": self.run,
            "verdict": self.verdict,
            "conditions": [self._finding(name, found) for name, found in self.conditions.items()],
            "findings": [self._finding(name, found) for name, found in self.findings.items()],
            "clear": list(self.clear),
            "cannot_tell": [
                {"rule": name, "reason": unknown.reason, "hint": unknown.hint}
                for name, unknown in self.cannot_tell.items()
            ],
        }

    def _finding(self, name: str, finding: Finding) -> dict[str, Any]:
        fields: dict[str, Any] = {"rule": name, **asdict(finding)}
        return {**fields, "cost_ns": self.cost_ns(finding)}

    def __repr__(self) -> str:
        lines = [self.verdict]
        lines += [f"  {name}: {found.title}" for name, found in self.findings.items()]
        return "\n".join(lines)


def advise(run: Run, rules: tuple[Rule, ...] = RULES) -> Advice:
    """Ask every rule. If a rule fails on an unusual run, only this rule cannot tell."""
    training = Training(run)
    advice = Advice(total_ns=training.total_ns, step_count=training.step_count, run=str(run.path))
    conditions = {rule.NAME: _verdict(rule, training) for rule in CONDITIONS}
    advice.conditions = {name: one for name, one in conditions.items() if isinstance(one, Finding)}
    found: dict[str, Finding] = {}
    for rule in rules:
        if rule.NAME in advice.conditions:
            continue
        verdict = conditions.get(rule.NAME) or _verdict(rule, training)
        verdict = _unless_small(verdict, advice.conditions)
        if isinstance(verdict, Finding):
            found[rule.NAME] = verdict
        elif isinstance(verdict, Clear):
            advice.clear[rule.NAME] = verdict
        else:
            advice.cannot_tell[rule.NAME] = verdict
    for name, cause in _explained(found).items():
        title = found.pop(name).title
        advice.clear[name] = Clear(message("advise.explained", title=title, cause=cause))
    advice.findings = dict(sorted(found.items(), key=lambda named: -named[1].share))
    return advice


def _unless_small(verdict: Verdict, conditions: dict[str, Finding]) -> Verdict:
    """The verdict, or why its finding is too small to report."""
    if not isinstance(verdict, Finding) or verdict.is_warning:
        return verdict
    if verdict.share < SMALLEST_SHARE:
        return Clear(message("advise.small", title=verdict.title))
    crowding = max((condition.share for condition in conditions.values()), default=0.0)
    if verdict.share < SMALLEST_SHARE + CROWDED_RATIO * crowding:
        return CannotTell(
            message("advise.maybe-other-programs", title=verdict.title),
            message("advise.record-on-idle-machine"),
        )
    return verdict


def _explained(found: dict[str, Finding]) -> dict[str, str]:
    """The findings that another finding explains, each with the name of that finding."""
    return {
        symptom: cause
        for cause, symptoms in EXPLAINS.items() if cause in found
        for symptom in symptoms if symptom in found
        if _gained(found[cause]) >= EXPLAINING_RATIO * found[symptom].share
    }  # fmt: skip


def _gained(finding: Finding) -> float:
    """The part of step time that fixing it gains. It may be more than its own share: preparing the
    data that training waits for uses the cores as well."""
    return max(finding.share, 1 - 1 / finding.expected_speedup)


def rules_named(names: Sequence[str]) -> tuple[Rule, ...]:
    """The rules with these names, in the order of the registry; all rules if none is named."""
    by_name = {rule.NAME: rule for rule in RULES}
    wanted = {name.lower().replace("_", "-"): name for name in names}
    for name, given in wanted.items():
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, 1)
            known = ", ".join(by_name)
            hint = message("errors/names.near-rule", near=near[0], known=known) if near else ""
            raise UsageError.of("errors/names.unknown-rule", name=given, known=known, hint=hint)
    return tuple(rule for rule in RULES if not wanted or rule.NAME in wanted)


def manual(rule: Rule, language: str = ENGLISH) -> tuple[str, str]:
    """The fault that a rule looks for, in one line, and the manual of the rule as Markdown."""
    title, _, text = (messages.manual(rule.NAME, language) or rule.__doc__ or "").partition("\n")
    return title.strip("# .。"), text.strip()


def _verdict(rule: Rule, training: Training) -> Verdict:
    if training.has_metrics_only:
        return CannotTell(message("advise.metrics-only"), message("advise.record-a-loop"))
    if not training.step_count and getattr(rule, "NEEDS_STEPS", True):
        return CannotTell(message("advise.no-steps"), message("advise.record-a-loop"))
    if training.is_all_warm_up:
        return CannotTell(
            message("advise.only-warm-up"),
            message("advise.record-steps", steps=count(WARM_UP_STEPS + ENOUGH_STEPS)),
        )
    try:
        return rule.check(training)
    except Exception as error:
        return CannotTell(
            message("advise.bug", kind=type(error).__name__, error=str(error)),
            message("advise.report"),
        )
