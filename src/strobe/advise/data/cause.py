"""Why batches are late: the answer that the rule reports."""

from dataclasses import dataclass

from strobe.messages import Message


@dataclass(frozen=True)
class Cause:
    stage: str | None
    why: Message
    recovered: float  # part of the waiting that the first fix removes
    fixes: tuple[Message, ...]
    where: str | None
    # What the first fix saves outside the waits, as part of step time.
    beyond: float = 0.0
    # The least and the most that is recovered, if it depends on what was not measured.
    recovered_range: tuple[float, float] | None = None

    @property
    def is_certain(self) -> bool:
        return self.recovered_range is None
