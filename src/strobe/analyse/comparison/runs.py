"""What got slower or faster between two runs, and what explains the difference?

The typical steps of both are compared part by part. The parts tile a step, so their differences add
up to the difference of the steps exactly. In the forward pass, the backward pass and the update,
operators explain the part as far as both runs recorded them; what they leave unexplained is a row
too. Runs with metrics are compared by what they reached, and need no steps.
"""

import math
from dataclasses import dataclass
from typing import Any

from strobe.analyse.comparison.metrics import LEVELS, METRICS, MetricsCompared, compare_metrics
from strobe.analyse.comparison.metrics_verdict import metrics_verdict
from strobe.analyse.comparison.operators import Operator, matched
from strobe.analyse.comparison.settings import OTHERS, amounts, settings
from strobe.analyse.comparison.steps import (
    LEAST_STEPS,
    PARTS,
    Interval,
    TypicalStep,
    interval,
    typical_step,
)
from strobe.analyse.tables.devices import device_time
from strobe.errors import MissingData
from strobe.messages import Message
from strobe.model.schema import Column, Table
from strobe.store.run import Run
from strobe.units import percent

# Operators that explain less of a step than this are part of the remainder.
MIN_SHARE = 0.01
# If other programs used this many more cores in one run, the verdict says so.
BUSIER_CORES = 0.2
_INTERVAL = "95% confidence interval"
# Parts that operators explain.
_OF_OPERATORS = ("forward", "backward", "update")

STEPS = Table(
    "compare-steps",
    "How long is the typical step of each run, and each of its parts?",
    (
        Column("part", "str", "step, or a part of it; the parts add up to the step."),
        Column("a_ns", "i64", "In the first run."),
        Column("b_ns", "i64", "In the second run."),
        Column(
            "difference_ns", "i64", "Second minus first; those of the parts add up to the step's."
        ),
        Column("ratio", "f64", "Second divided by first; null where the first has none.", True),
    ),
)
EXPLANATION = Table(
    "compare-explanation",
    "What explains the difference of the typical steps, biggest first?",
    (
        Column("part", "str", "The part of the step."),
        Column("what", "str", "An operator with its module, the entire part, or its remainder."),
        Column("a_ns", "i64", "Per step, in the first run."),
        Column("b_ns", "i64", "Per step, in the second run."),
        Column("difference_ns", "i64", "Second minus first; all rows add up to the step's."),
        Column("share", "f64", "Share of the difference of the step; all rows add up to 1.", True),
    ),
)
OPERATORS = Table(
    "compare-operators",
    "Which operators got slower or faster, matched by module, name and shapes?",
    (
        Column("part", "str", "forward, backward, or otherwise the phase it ran in."),
        Column("scope", "str", "Full path of the module it worked for.", nullable=True),
        Column("name", "str", "Name of the operator."),
        Column("input_shapes", "str", "Shapes of its inputs; null where they differ.", True),
        Column("a_calls", "f64", "Calls per step in the first run."),
        Column("b_calls", "f64", "Calls per step in the second run."),
        Column("a_ns", "i64", "Self time per step in the first run."),
        Column("b_ns", "i64", "Self time per step in the second run."),
        Column("difference_ns", "i64", "Second minus first."),
    ),
)
DEVICES = Table(
    "compare-devices",
    "What do the devices do in a step of each run?",
    (
        Column("part", "str", "compute, communication, memory or idle."),
        Column("a_ns", "i64", "Per step in the first run, mean of its devices."),
        Column("b_ns", "i64", "Per step, in the second run."),
        Column("difference_ns", "i64", "Second minus first."),
    ),
)
AMOUNTS = Table(
    "compare-amounts",
    "How much memory, CPU time and queueing does each run have?",
    (
        Column("what", "str", "What was measured; the name ends with the unit."),
        Column("a", "f64", "In the first run.", nullable=True),
        Column("b", "f64", "In the second run.", nullable=True),
    ),
)
SETTINGS = Table(
    "compare-settings",
    "In which settings do the runs differ?",
    (
        Column("what", "str", "The setting."),
        Column("a", "str", "In the first run.", nullable=True),
        Column("b", "str", "In the second run.", nullable=True),
    ),
)
TABLES = (STEPS, EXPLANATION, OPERATORS, DEVICES, AMOUNTS, SETTINGS, METRICS, LEVELS)

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Comparison:
    """Run B compared with run A. Rows are those of the tables declared above."""

    a: str
    b: str
    step_ratio: Interval  # NaN where the runs are compared by metrics alone
    steps_a: int
    steps_b: int
    mean_a_ns: int  # of all steps, rare long ones included
    mean_b_ns: int
    steps: Rows
    explanation: Rows
    operators: Rows
    devices: Rows
    amounts: Rows
    settings: Rows
    metrics: Rows
    levels: Rows
    letter: str = "B"  # how the second run is called where there are several

    @property
    def has_steps(self) -> bool:
        return bool(self.steps)

    @property
    def metrics_verdict(self) -> Message | None:
        """What the most important metric that both logged says; None without one."""
        return metrics_verdict(self.metrics, self.levels, self.letter)

    @property
    def is_different(self) -> bool:
        """Whether the difference exceeds noise."""
        return self.is_slower() or self.is_faster()

    def is_slower(self, by_ratio: float = 0.0) -> bool:
        """Whether B is slower than A by more than that, with 95% confidence."""
        return self.step_ratio.low is not None and self.step_ratio.low > 1 + by_ratio

    def is_faster(self) -> bool:
        return self.step_ratio.high is not None and self.step_ratio.high < 1

    @property
    def verdict(self) -> str:
        """One sentence."""
        if not self.has_steps:
            return self.metrics_verdict or ""
        ratio, low, high = self.step_ratio.ratio, self.step_ratio.low, self.step_ratio.high
        if low is None or high is None:
            return (f"too few steps to compare: {self.steps_a} and {self.steps_b}; at least "
                    f"{LEAST_STEPS} of each are needed")  # fmt: skip
        if self.is_slower():
            return (f"{self.letter} is slower: {percent(ratio - 1)} more time per step ("
                    f"{_INTERVAL} {percent(low - 1)} to {percent(high - 1)})"
                    f"{self._caution()}")  # fmt: skip
        if self.is_faster():
            return (f"{self.letter} is faster: {percent(1 - ratio)} less time per step ("
                    f"{_INTERVAL} {percent(1 - high)} to {percent(1 - low)})"
                    f"{self._caution()}")  # fmt: skip
        around = f"{(low - 1) * 100:+.1f}% to {(high - 1) * 100:+.1f}%"
        change = f"{(ratio - 1) * 100:+.1f}%"
        return (f"no difference beyond noise: {self.letter}'s step time changes by {change} "
                f"({_INTERVAL} {around})")  # fmt: skip

    def _caution(self) -> str:
        """Another possible explanation: other programs kept the machine busier in one run."""
        a, b = next(((a, b) for what, a, b in self.amounts if what == OTHERS), (None, None))
        if a is None or b is None or (b - a) * (self.step_ratio.ratio - 1) <= 0:
            return ""
        if abs(b - a) < BUSIER_CORES:
            return ""
        busier, quieter = (self.letter, "A") if b > a else ("A", self.letter)
        return (f"; but while {busier} ran, other programs used {abs(b - a):.1f} more cores "
                f"than during {quieter}")  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": True,
            "a": self.a,
            "b": self.b,
            "verdict": str(self.verdict),
            "is_different": self.is_different,
            "metrics_verdict": self.metrics_verdict and str(self.metrics_verdict),
            "step_ratio": self.step_ratio.ratio if self.has_steps else None,
            "step_ratio_low": self.step_ratio.low,
            "step_ratio_high": self.step_ratio.high,
            "steps_counted": [self.steps_a, self.steps_b],
            "mean_step_ns": [self.mean_a_ns, self.mean_b_ns],
            **{
                table.name.removeprefix("compare-"): {
                    "columns": [
                        {"name": column.name, "type": column.type, "doc": column.doc}
                        for column in table.columns
                    ],
                    "rows": [list(row) for row in getattr(self, table.name[len("compare-") :])],
                }
                for table in TABLES
            },
        }


def compare(a: Run, b: Run, min_share: float = MIN_SHARE, letter: str = "B") -> Comparison:
    one, other, reached = typical_step(a), typical_step(b), compare_metrics(a, b)
    if one is None or other is None:
        if not reached.metrics:
            raise MissingData.of(
                "errors/run.nothing-to-compare", where=str(a.path if one is None else b.path)
            )
        return _without_steps(a, b, reached, letter)
    return _with_steps(a, b, (one, other), reached, min_share, letter)


def _without_steps(a: Run, b: Run, reached: MetricsCompared, letter: str) -> Comparison:
    """By metrics and settings alone."""
    return Comparison(
        a=str(a.path), b=str(b.path), step_ratio=Interval(math.nan, None, None),
        steps_a=0, steps_b=0, mean_a_ns=0, mean_b_ns=0, steps=[], explanation=[], operators=[],
        devices=[], amounts=amounts(a, b), settings=settings(a, b), metrics=reached.metrics,
        levels=reached.levels, letter=letter,
    )  # fmt: skip


def _with_steps(
    a: Run, b: Run, typical: tuple[TypicalStep, TypicalStep], reached: MetricsCompared,
    min_share: float, letter: str,
) -> Comparison:  # fmt: skip
    one, other = typical
    parts = {part: (one.parts_ns[part], other.parts_ns[part]) for part in PARTS}
    operators = matched(a, b)
    smallest_ns = min_share * max(one.step_ns, other.step_ns)
    return Comparison(
        a=str(a.path),
        b=str(b.path),
        step_ratio=interval(one, other),
        steps_a=one.steps,
        steps_b=other.steps,
        mean_a_ns=one.mean_ns,
        mean_b_ns=other.mean_ns,
        steps=[
            (name, ns_a, ns_b, ns_b - ns_a, ns_b / ns_a if ns_a else None)
            for name, (ns_a, ns_b) in {"step": (one.step_ns, other.step_ns), **parts}.items()
        ],
        explanation=explained(parts, operators, smallest_ns),
        operators=[
            (row.part, row.scope, row.name, row.shapes, row.calls_a, row.calls_b, round(row.ns_a),
             round(row.ns_b), round(row.ns_b) - round(row.ns_a))
            for row in operators
        ],
        devices=_devices(a, b),
        amounts=amounts(a, b),
        settings=settings(a, b),
        metrics=reached.metrics,
        levels=reached.levels,
        letter=letter,
    )  # fmt: skip


def explained(
    parts: dict[str, tuple[int, int]], operators: list[Operator], smallest_ns: float
) -> Rows:
    """Rows whose differences add up to that of the step, biggest first."""
    rows: list[tuple[str, str, int, int]] = []
    for part, (ns_a, ns_b) in parts.items():
        if not ns_a and not ns_b:
            continue
        by_module = _by_module(operators, part, smallest_ns) if part in _OF_OPERATORS else []
        rows += by_module
        left_a = ns_a - sum(row[2] for row in by_module)
        left_b = ns_b - sum(row[3] for row in by_module)
        rows.append((part, "the rest of it" if by_module else "all of it", left_a, left_b))
    total = sum(ns_b - ns_a for _, _, ns_a, ns_b in rows)
    return [
        (part, what, ns_a, ns_b, ns_b - ns_a, (ns_b - ns_a) / total if total else None)
        for part, what, ns_a, ns_b in sorted(rows, key=lambda row: -abs(row[3] - row[2]))
    ]


def _by_module(
    operators: list[Operator], part: str, smallest_ns: float
) -> list[tuple[str, str, int, int]]:
    """Operators of a part by module and name whose difference is large enough for a row."""
    sums: dict[str, tuple[float, float]] = {}
    for row in operators:
        if row.part == part:
            what = f"{row.name} in {row.scope}" if row.scope else row.name
            before = sums.get(what, (0.0, 0.0))
            sums[what] = (before[0] + row.ns_a, before[1] + row.ns_b)
    return [
        (part, what, round(ns_a), round(ns_b))
        for what, (ns_a, ns_b) in sums.items()
        if abs(ns_b - ns_a) >= smallest_ns
    ]


def _devices(a: Run, b: Run) -> Rows:
    one, other = _device_parts(a), _device_parts(b)
    if not one or not other:
        return []
    return [(part, one[part], other[part], other[part] - one[part]) for part in one]


def _device_parts(run: Run) -> dict[str, int]:
    """Per step, the mean over all devices that compute."""
    relation = device_time.run(run)
    rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    of_steps = [row for row in rows if row["step"] is not None and row["compute_ns"]]
    return {
        part: round(sum(row[f"{part}_ns"] for row in of_steps) / len(of_steps))
        for part in ("compute", "communication", "memory", "idle")
        if of_steps
    }
