"""What a rule may answer: found, clear, or cannot tell."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Evidence:
    """Rows of a table that show the fault; those of events can be found on the timeline."""

    table: str
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Figure:
    """A number that a finding's share is derived from, in the order of the arithmetic."""

    what: str
    value: float
    unit: str  # steps, ns, ratio


@dataclass(frozen=True)
class Finding:
    """A fault that costs time, or a condition of the recording that does."""

    title: str  # one line: what is wrong, with its numbers
    share: float  # of all step time, that the fault costs
    expected_speedup: float  # old step time over new, if the first of the fixes is applied
    fixes: tuple[str, ...]  # each a concrete change, the best first; the user's own line in it
    evidence: tuple[Evidence, ...]
    where: str | None = None  # train.py:31
    stage: str | None = None  # for data-starvation: reading, transform, collate, transfer, workers
    is_certain: bool = True  # False: the cost is an estimate, and the title says so
    is_warning: bool = False  # True: worth reporting though no cost was measured yet
    saves_at_start_ns: int = 0  # what the fix saves once at each start, where no step gets faster
    why: str = ""  # a sentence: what was measured
    derivation: tuple[Figure, ...] = ()  # how the share follows from what was measured
    # Where the gain depends on what was not measured: at least and at most.
    speedup_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Clear:
    """The fault is not there, or costs too little to tell of."""

    why: str


@dataclass(frozen=True)
class CannotTell:
    """What the rule needs was not recorded."""

    reason: str
    hint: str  # how to record it


Verdict = Finding | Clear | CannotTell
