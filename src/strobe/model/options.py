"""What to record: one declaration that the CLI, the environment and Python share."""

import difflib
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from strobe.errors import UsageError

MEGABYTE = 1_000_000

# By default a window of full recording follows the steps in which everything still warms up.
DEFAULT_WINDOW = (6, 11)


def _option(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Options:
    light: bool = _option(False, "Record steps and phases only; no window of full recording.")
    steps: tuple[int, int] | None = _option(
        None, "Record steps FIRST:END in full; FIRST is included, END is not, counted from 1."
    )
    every: tuple[int, int] | None = _option(
        None, "Record COUNT steps in full out of every PERIOD steps: PERIOD:COUNT."
    )
    whole: bool = _option(False, "Record every step in full.")
    record_shapes: bool = _option(True, "Record shapes and types of operator inputs.")
    profile_memory: bool = _option(False, "Record every allocation with its address.")
    with_stack: bool = _option(False, "Record the Python call stack of operators.")
    modules: bool = _option(True, "Record which module of the model each operator worked for.")
    timeline_limit: int = _option(500, "End full recording early past so many MB of timeline.")
    sample_stacks: bool = _option(True, "Look now and then at the line that training is at.")
    sample_ms: int = _option(500, "Time between two samples of the host's counters.")

    def __post_init__(self) -> None:
        chosen = [name for name in ("light", "steps", "every", "whole") if getattr(self, name)]
        if len(chosen) > 1:
            raise UsageError(
                f"the options {' and '.join(chosen)} contradict each other",
                hint="choose one of light, steps, every, whole",
            )
        if self.timeline_limit <= 0 or self.sample_ms < 10:
            raise UsageError(
                "timeline_limit must be at least 1 (MB) and sample_ms at least 10",
                hint=f"given: timeline_limit={self.timeline_limit}, sample_ms={self.sample_ms}",
            )
        if self.steps and not 1 <= self.steps[0] < self.steps[1]:
            raise UsageError(
                f"no step lies in {self.steps[0]}:{self.steps[1]}",
                hint="steps count from 1 and END is not included: 10:20 records steps 10 to 19",
            )
        if self.every and not 1 <= self.every[1] <= self.every[0]:
            raise UsageError(
                f"cannot record {self.every[1]} of every {self.every[0]} steps",
                hint="give PERIOD:COUNT with COUNT at most PERIOD, e.g. 500:5",
            )

    def wants_full(self, step: int) -> bool:
        """Whether this step (counted from 1) is to be recorded in full."""
        if self.light:
            return False
        if self.whole:
            return True
        if self.every:
            period, count = self.every
            # The steps at the end of each period, so that the first window is past warm-up.
            return (step - 1) % period >= period - count
        first, end = self.steps or DEFAULT_WINDOW
        return first <= step < end

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Options":
        known = {f.name for f in fields(cls)}
        for name in data:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                raise UsageError(
                    f"there is no option {name!r}",
                    hint=f"did you mean {close[0]!r}?" if close else f"options: {sorted(known)}",
                )
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**values)


def parse_pair(text: str, name: str) -> tuple[int, int]:
    """`10:20` as (10, 20)."""
    first, _, second = text.partition(":")
    try:
        return int(first), int(second)
    except ValueError:
        raise UsageError(
            f"--{name} takes two numbers with a colon between them, not {text!r}",
            hint=f"for example: --{name} {'500:5' if name == 'every' else '10:20'}",
        ) from None
