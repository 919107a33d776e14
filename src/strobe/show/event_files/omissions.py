"""What a format cannot hold: counted while a run is written, and reported once."""

from strobe import units
from strobe.messages import Message, message


class Omissions:
    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, what: str, count: int = 1) -> None:
        """`what` is the id of a message in the catalogue `export`."""
        if count:
            self._counts[what] = self._counts.get(what, 0) + int(count)

    def messages(self) -> list[Message]:
        return [message(f"export.{what}", count=units.count(count))
                for what, count in self._counts.items()]  # fmt: skip
