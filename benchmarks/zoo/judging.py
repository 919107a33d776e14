"""Is the advice right? One row for each pair, healthy script and real trace."""

import statistics
from dataclasses import dataclass, field
from typing import Any

from benchmarks.zoo.catalogue import Pair, Script
from benchmarks.zoo.kept import Kept
from benchmarks.zoo.running import Failed, advice_of

# A foretold speed-up is right within this ratio of the measured one.
RIGHT_WITHIN = 0.25
# A false alarm that claims more of the step time than this misleads people.
GRAVE_SHARE = 0.10


@dataclass
class FalseAlarm:
    script: str
    rule: str
    share: float
    title: str


@dataclass
class Row:
    """What was expected of a script with a fault, and what came."""

    name: str
    expected: str
    stage: str | None = None
    top: str | None = None
    top_stage: str | None = None
    where: str | None = None
    share: float | None = None  # of the expected finding, wherever it stands
    predicted: float | None = None
    saved_at_start_s: float = 0.0  # by a fix that makes no step faster
    measured: float | None = None
    others: list[str] = field(default_factory=list)
    why_not: str | None = None  # what the rule said where it found nothing
    problem: str | None = None

    @property
    def is_hit(self) -> bool:
        return self.top == self.expected

    @property
    def is_stage_right(self) -> bool:
        return self.stage == self.top_stage

    @property
    def error(self) -> float | None:
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted / self.measured - 1

    @property
    def is_predicted(self) -> bool:
        return self.error is not None and abs(self.error) <= RIGHT_WITHIN


def judge_fault(pair: Pair, kept: Kept) -> Row:
    """What is said of the faulty script alone."""
    row = Row(pair.name, pair.rule, pair.stage)
    _fill(row, kept.advice(pair.faulty))
    return row


def judge_pair(pair: Pair, kept: Kept, repeat: int) -> tuple[Row, list[FalseAlarm]]:
    row, alarms = Row(pair.name, pair.rule, pair.stage), []
    try:
        row = judge_fault(pair, kept)
        alarms = false_alarms(pair.repaired, kept)
        row.measured = _measured(pair, kept, repeat) if repeat else None
        if row.saved_at_start_s and repeat:
            whole = kept.seconds(pair.faulty, 0, with_warm_up=True, with_waits_for_a_core=False)
            row.predicted = whole / max(1e-9, whole - row.saved_at_start_s)
    except Failed as error:
        row.problem = str(error)
    return row, alarms


def judge_trace(name: str, path: str, expected: str) -> Row:
    row = Row(name, expected)
    try:
        _fill(row, advice_of(path))
    except Failed as error:
        row.problem = str(error)
    return row


def false_alarms(script: Script, kept: Kept) -> list[FalseAlarm]:
    """Every finding on a script that has no fault, but for those that are true."""
    return [
        FalseAlarm(script.name, finding["rule"], finding["share"], finding["title"])
        for finding in kept.advice(script)["findings"]
        if finding["rule"] not in script.also_true
    ]


def _fill(row: Row, advice: dict[str, Any]) -> None:
    findings = advice["findings"]
    row.others = [f"{found['rule']} {found['share']:.0%}" for found in findings[1:]]
    if findings:
        row.top, row.top_stage = findings[0]["rule"], findings[0].get("stage")
    for found in findings:
        if found["rule"] == row.expected:
            row.share, row.predicted = found["share"], found["expected_speedup"]
            row.saved_at_start_s = found["saves_at_start_ns"] / 1e9
            row.where = found["where"]
            return
    row.why_not = _why_not(row.expected, advice)


def _why_not(rule: str, advice: dict[str, Any]) -> str:
    for unknown in advice["cannot_tell"]:
        if unknown["rule"] == rule:
            return f"cannot tell: {unknown['reason']}"
    return "clear" if rule in advice["clear"] else "not asked"


def _measured(pair: Pair, kept: Kept, repeat: int) -> float:
    """Medians of turns: the faulty one, the repaired one, the faulty one, ..."""
    options = {
        "with_warm_up": pair.rule == "warm-up",
        # What others take of the cores is no part of a fault, unless the fault is just that.
        "with_waits_for_a_core": pair.rule == "thread-oversubscription",
    }
    faulty, repaired = [], []
    for number in range(repeat):
        faulty.append(kept.seconds(pair.faulty, number, **options))
        repaired.append(kept.seconds(pair.repaired, number, **options))
    return statistics.median(faulty) / statistics.median(repaired)
