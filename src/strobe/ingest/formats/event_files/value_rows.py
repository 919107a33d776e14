"""Values of events as rows: what the formats of event files have in common."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from strobe.ingest.formats.event_files.events import Events, tags
from strobe.ingest.formats.event_files.messages import Fields
from strobe.ingest.formats.event_files.names import Names
from strobe.ingest.formats.event_files.tensor_rows import add_image
from strobe.ingest.formats.xplane.wire import fields
from strobe.ingest.trace.codes import Array
from strobe.ingest.trace.metric_rows import Metrics

Say = Callable[[str, int], None]
Row = dict[str, Any]
Take = Callable[[bytes, Row, int], None]  # of one value: its message, its row so far, its tag


class Batch(NamedTuple):
    """The values of a piece, with what they need to become rows."""

    events: Events
    tag: Array  # its number; -1 where a value has none
    attempt: Array


class ValueRows:
    """Takes the values of one folder of event files."""

    def __init__(self, metrics: Metrics, source: str, say: Say, prefix: str = "") -> None:
        self.metrics, self.say, self.prefix = metrics, say, prefix
        self.tags = metrics["scalars"].codes["tag"]
        self._names = Names(self.tags, prefix)
        self._source = source
        self._source_code = metrics["scalars"].codes["source"][source]

    def codes(self, found: Events) -> Array:
        """The number of the tag of each value; -1 where it has none."""
        tag = tags(found)
        code = np.full(len(found.values), -1, dtype=np.int32)
        code[tag.owner] = self._names.of(found.block, tag.start, tag.end)
        return code

    def add_scalars(self, batch: Batch, owner: Array, value: Array) -> None:
        """Numbers of values; those without a tag are left out."""
        owner, value = (column[batch.tag[owner] >= 0] for column in (owner, value))
        if not len(owner):
            return
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
        event = batch.events.values.owner[owner]
        self.metrics["scalars"].add(
            {
                "tag": batch.tag[owner], "step": batch.events.step[event],
                "ts_ns": batch.events.ts_ns[event], "value": value[order].astype(np.float64),
                "source": np.full(len(owner), self._source_code, dtype=np.int8),
                "attempt": batch.attempt[owner],
            }
        )  # fmt: skip

    def add_scalar(self, tag: int, value: float, row: Row) -> None:
        columns = {name: np.array([row[name]]) for name in ("step", "ts_ns", "attempt")}
        self.metrics["scalars"].add(
            {
                "tag": np.array([tag], dtype=np.int32), "value": np.array([value]), **columns,
                "source": np.array([self._source_code], dtype=np.int8),
            }
        )  # fmt: skip

    def each(self, batch: Batch, parts: Fields, take: Take) -> None:
        """Values that are read one by one."""
        found = batch.events
        names = self.tags.values_list() if len(parts) else []
        for owner, start, end in rows(parts.in_order()):
            tag, event = int(batch.tag[owner]), int(found.values.owner[owner])
            if tag < 0:
                continue
            row = {
                "tag": names[tag], "step": int(found.step[event]),
                "ts_ns": int(found.ts_ns[event]), "source": self._source,
                "attempt": int(batch.attempt[owner]),
            }  # fmt: skip
            take(found.block.text(start, end), row, tag)

    def add_image(self, data: bytes, row: Row, tag: int) -> None:
        """Both formats have the same message for an image."""
        size: dict[int, int] = {}
        encoded = b""
        for number, value in fields(data, self.broken):
            if isinstance(value, int) and value < 1 << 31:
                size[number] = value
            elif isinstance(value, bytes) and number == 4:
                encoded = value
        shape = (size.get(2), size.get(1), size.get(3))
        add_image(self.metrics, encoded, shape, index=0, **row)

    def add_histogram(self, columns: Row | None, row: Row) -> None:
        if columns is None:
            self.say("histograms that contradict themselves were left out", 1)
        else:
            self.metrics["histograms"].add_row(**columns, **row)

    def broken(self) -> None:
        self.say("values that are damaged: what is before the damage was read", 1)


def rows(parts: Fields) -> list[tuple[int, int, int]]:
    """Owner, start and end of each."""
    return list(zip(parts.owner.tolist(), parts.start.tolist(), parts.end.tolist(), strict=True))
