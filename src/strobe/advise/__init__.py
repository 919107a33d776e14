"""Faults we can name. To add one: write its module, add one line here."""

from dataclasses import dataclass, field
from typing import Protocol

from strobe.advise import gc_pause
from strobe.advise.finding import CannotTell, Clear, Finding, Verdict
from strobe.advise.training import Training
from strobe.store.run import Run


class Rule(Protocol):
    """A module that looks for one fault. Its docstring is the manual."""

    NAME: str

    def check(self, training: Training) -> Verdict: ...


RULES: tuple[Rule, ...] = (gc_pause,)  # keep sorted

# Below it a fault is not worth a person's time: the gain is lost in run-to-run noise.
WORTH_TELLING_RATIO = 0.05


@dataclass
class Advice:
    """What every rule said of a run; findings with the dearest first."""

    findings: dict[str, Finding] = field(default_factory=dict)
    clear: dict[str, Clear] = field(default_factory=dict)
    cannot_tell: dict[str, CannotTell] = field(default_factory=dict)
    total_ns: int = 0  # of the steps judged

    def cost_ns(self, finding: Finding) -> int:
        return round(finding.share * self.total_ns)


def advise(run: Run, rules: tuple[Rule, ...] = RULES) -> Advice:
    """Ask every rule. One that breaks on a strange run cannot tell, and the others still can."""
    training = Training(run)
    advice = Advice(total_ns=training.total_ns)
    found: dict[str, Finding] = {}
    for rule in rules:
        verdict = _verdict(rule, training)
        if isinstance(verdict, Finding) and verdict.share < WORTH_TELLING_RATIO:
            verdict = Clear(f"{verdict.title} (too little to matter)")
        if isinstance(verdict, Finding):
            found[rule.NAME] = verdict
        elif isinstance(verdict, Clear):
            advice.clear[rule.NAME] = verdict
        else:
            advice.cannot_tell[rule.NAME] = verdict
    advice.findings = dict(sorted(found.items(), key=lambda named: -named[1].share))
    return advice


def _verdict(rule: Rule, training: Training) -> Verdict:
    if not training.step_count:
        return CannotTell(
            "no training step was seen", "record a training loop: strobe run train.py"
        )
    try:
        return rule.check(training)
    except Exception as error:
        return CannotTell(
            f"a fault of Strobe's own: {type(error).__name__}: {error}",
            "please report it, with the run if you can",
        )
