"""Why batches are late: the answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    stage: str | None
    why: str
    recovered: float  # part of the waiting that the first fix ends
    fixes: tuple[str, ...]
    where: str | None
    # What the first fix ends outside the waits, as part of step time.
    beyond: float = 0.0
    # At least and at most, where that depends on what was not measured.
    recovered_range: tuple[float, float] | None = None

    @property
    def is_certain(self) -> bool:
        return self.recovered_range is None


def at_line(line: str | None) -> str:
    return f" at {line}" if line else ""
