"""Whether a prediction was right: the advice for one run, and a later run of the same script.

Only what was measured is stated. The fix counts as applied if the later run no longer has the
finding, or if its loaders now have the arguments that the fix names.
"""

import json
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from strobe.advise import Advice, advise
from strobe.advise.finding import Finding
from strobe.advise.source_change import arguments_of
from strobe.advise.verdict import gain
from strobe.analyse.comparison.runs import Comparison
from strobe.messages import Message, message
from strobe.model.manifest import Manifest
from strobe.store.run import Run
from strobe.units import times


@dataclass(frozen=True)
class Outcome:
    rule: str
    predicted: Message  # about 2.2× faster
    predicted_speedup: float
    measured_speedup: float  # mean step of A over mean step of B
    is_gone: bool  # B does not have the finding
    is_crowded: bool  # other programs used cores in one of the runs

    @property
    def sentence(self) -> Message:
        id = "outcome.gone" if self.is_gone else "outcome.applied"
        found = message(id, predicted=self.predicted, rule=self.rule, change=self._change)
        return message("outcome.crowded", outcome=found) if self.is_crowded else found

    @property
    def _change(self) -> Message:
        ratio = self.measured_speedup
        id = "outcome.faster" if ratio >= 1 else "outcome.slower"
        factor = times(max(ratio, 1 / ratio)).removesuffix("×")
        return message(id, times=message("units.times", factor=factor))

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule, "predicted_speedup": self.predicted_speedup,
            "measured_speedup": self.measured_speedup, "is_gone": self.is_gone,
            "is_crowded": self.is_crowded,
        }  # fmt: skip


def outcome(a: Run, b: Run, comparison: Comparison) -> Outcome | None:
    """None if nothing was predicted, or if B is not the script of A with the fix applied."""
    if not _are_of_one_script(a.manifest, b.manifest) or not comparison.mean_b_ns:
        return None
    before = advise(a)
    found = next(((rule, finding) for rule, finding in before.findings.items()
                  if not finding.is_warning and not finding.saves_at_start_ns), None)  # fmt: skip
    if found is None:
        return None
    (rule, finding), after = found, advise(b)
    is_gone = rule in after.clear
    if not is_gone and not (rule in after.findings and _is_applied(finding, a, b)):
        return None
    return Outcome(
        rule, gain(finding), finding.expected_speedup,
        comparison.mean_a_ns / comparison.mean_b_ns, is_gone, _is_crowded(before, after),
    )  # fmt: skip


def _are_of_one_script(a: Manifest, b: Manifest) -> bool:
    names = [next((PurePath(word).name for word in each.command if word.endswith(".py")), "")
             for each in (a, b)]  # fmt: skip
    return bool(names[0]) and names[0] == names[1]


def _is_crowded(a: Advice, b: Advice) -> bool:
    return bool(a.conditions or b.conditions)


def _is_applied(finding: Finding, a: Run, b: Run) -> bool:
    """Whether a loader of B has the arguments that the fix names, and no loader of A has them."""
    wanted = arguments_of(finding)
    if wanted is None:
        return False
    return _has(b, wanted[1]) and not _has(a, wanted[1])


def _has(run: Run, wanted: dict[str, str]) -> bool:
    rows = run.sql("SELECT details FROM places WHERE what = 'data loader'").fetchall()
    for (details,) in rows:
        settings = json.loads(details) if details else {}
        known = {name: value for name, value in wanted.items() if name in settings}
        if known and all(str(settings[name]) == value for name, value in known.items()):
            return True
    return False
