"""Loss landscapes: rows of `tensors` and `texts` that are the parts of one message."""

import json
import re
from typing import Any

from strobe.ingest.formats.mindspore_summary.values import LANDSCAPE
from strobe.show.event_files import messages, summaries
from strobe.show.event_files.arrays import Array, array_of
from strobe.show.event_files.run_metrics import RankMetrics, Row

METADATA = "/metadata"
_PART = re.compile(r"(.*?)(/path/intervals|(?:/path|/convergence)?/([xyz]))\Z", re.DOTALL)
_INTERVALS = "/path/intervals"
_LANDSCAPE, _PATH, _METADATA, _CONVERGENCE = 1, 2, 3, 4


class Landscapes:
    """Those of one attempt, by tag and step."""

    def __init__(self, metrics: RankMetrics) -> None:
        self._metrics = metrics
        self._rows: dict[tuple[str, int], Row] = {}
        self._parts: dict[tuple[str, int], dict[str, Array]] = {}

    def take(self, row: Row) -> bool:
        """Whether it is a part of a landscape."""
        match = _PART.match(row["tag"]) if row["plugin"] == LANDSCAPE else None
        if match is None:
            return False
        array = array_of(self._metrics, row)
        if array is not None:
            place = (match[1], row["step"])
            self._rows.setdefault(place, {**row, "tag": match[1]})
            self._parts.setdefault(place, {})[match[2]] = array
        return True

    def metadata(self, row: Row) -> dict[str, Any] | None:
        """What a text says of a landscape that was taken; None if it is another text."""
        tag = row["tag"].removesuffix(METADATA)
        if tag == row["tag"] or (tag, row["step"]) not in self._rows:
            return None
        try:
            found = json.loads(row["text"])
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def events(self, metadata: dict[tuple[str, int], dict[str, Any]]) -> list[bytes]:
        return [
            summaries.landscape(row, _message(self._parts[place], metadata.get(place, {})))
            for place, row in self._rows.items()
        ]


def _message(parts: dict[str, Array], metadata: dict[str, Any]) -> bytes:
    path = b""
    if _INTERVALS in parts:
        path = b"".join(messages.integer(1, each) for each in parts[_INTERVALS].ravel().tolist())
    if points := _points(parts, "/path"):
        path += messages.data(2, points)
    about = b"".join((
        *(messages.text(number, str(metadata[name]))
          for number, name in ((1, "decomposition"), (2, "unit")) if name in metadata),
        *(messages.integer(3, metadata["step_per_epoch"]) for _ in range(1)
          if isinstance(metadata.get("step_per_epoch"), int)),
    ))  # fmt: skip
    found = {
        _LANDSCAPE: _points(parts, ""), _PATH: path, _METADATA: about,
        _CONVERGENCE: _points(parts, "/convergence"),
    }  # fmt: skip
    return b"".join(messages.data(number, data) for number, data in found.items() if data)


def _points(parts: dict[str, Array], place: str) -> bytes:
    return b"".join(
        messages.data(number, summaries.tensor_message(parts[f"{place}/{axis}"]))
        for number, axis in enumerate("xyz", 1) if f"{place}/{axis}" in parts
    )  # fmt: skip
